-- What operators define (plans, accounts, api_keys) is kept apart from what requests change (balances, rate_windows):
-- the hot rows stay small, and a region can share definitions without sharing counters.

create table plans (
  name text primary key,
  credits_per_period integer not null check (credits_per_period >= 0),
  rate_requests integer not null check (rate_requests > 0),
  rate_period_seconds integer not null check (rate_period_seconds > 0),
  created_at timestamptz not null default now()
);

insert into plans (name, credits_per_period, rate_requests, rate_period_seconds) values
  ('free', 1000, 60, 60),
  ('standard', 100000, 1000, 60),
  ('unlimited', 2000000000, 2000000000, 60);

create table accounts (
  id uuid primary key,
  name text not null,
  plan text not null references plans (name),
  -- Null: what the plan says.
  credits_per_period integer check (credits_per_period >= 0),
  rate_requests integer check (rate_requests > 0),
  rate_period_seconds integer check (rate_period_seconds > 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  suspended_at timestamptz,
  webhook_secret text not null,
  previous_webhook_secret text,
  previous_webhook_secret_until timestamptz,
  check ((rate_requests is null) = (rate_period_seconds is null))
);

create table balances (
  account_id uuid primary key references accounts (id) on delete cascade,
  -- What the plan gave for this period; credit_limit is this and the period's grants.
  allocated integer not null check (allocated >= 0),
  credit_limit integer not null check (credit_limit >= 0),
  credit_remaining integer not null check (credit_remaining between 0 and credit_limit),
  -- Periods are counted from here, so that the day of the month survives short months.
  period_anchor timestamptz not null,
  period_start timestamptz not null,
  period_end timestamptz not null check (period_end > period_start)
) with (fillfactor = 50);

create table api_keys (
  id uuid primary key,
  account_id uuid not null references accounts (id) on delete cascade,
  name text not null,
  prefix text not null,
  digest bytea not null unique,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz
);

create index api_keys_account on api_keys (account_id);

create table rate_windows (
  key_id uuid primary key references api_keys (id) on delete cascade,
  started_at timestamptz not null default '-infinity',
  used integer not null default 0,
  -- What `used` was before the last batch; see admission-statement.ts.
  used_before integer not null default 0,
  last_used_at timestamptz
) with (fillfactor = 50);

-- Scans and ledger rows are written with every charge, by a statement that has the account in hand: a foreign key would
-- look it up again for each row, which made a batch of 64 a third slower.
create table scans (
  id uuid primary key,
  account_id uuid not null,
  kind text not null check (kind in ('malware', 'nsfw_image')),
  mode text not null check (mode in ('sync', 'async')),
  status text not null default 'pending' check (status in ('pending', 'clean', 'threat', 'error')),
  region text not null,
  content_length bigint not null check (content_length >= 0),
  content_type text not null,
  content_name text,
  signals text[],
  metadata jsonb,
  created_at timestamptz not null default now(),
  completed_at timestamptz,
  check ((status = 'pending') = (completed_at is null))
);

create index scans_account on scans (account_id, created_at);

-- An account's amounts always sum to its credit_remaining.
create table credit_ledger (
  id bigint generated always as identity primary key,
  account_id uuid not null,
  kind text not null check (kind in ('opening', 'debit', 'refund', 'grant', 'roll', 'adjust')),
  amount integer not null,
  balance integer not null,
  scan_id uuid,
  note text,
  at timestamptz not null default now(),
  -- One debit and at most one refund for a scan, whoever asks and however often.
  unique (scan_id, kind)
);

create index credit_ledger_account on credit_ledger (account_id, id);
