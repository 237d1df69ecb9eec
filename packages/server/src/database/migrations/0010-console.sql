-- serves: 0005
-- Who may use the console. Operators need no account, everybody else holds one.
create table members (
  id uuid primary key,
  account_id uuid references accounts (id) on delete cascade,
  role text not null check (role in ('operator', 'owner', 'member')),
  email text not null,
  name text not null,
  password_hash text not null,
  totp_secret bytea,
  totp_confirmed_at timestamptz,
  -- The step of the last code that was taken: each counts once.
  totp_step bigint not null default 0,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz,
  check (role = 'operator' or account_id is not null)
);
create unique index members_email on members (lower(email));
create index members_account on members (account_id);

create table console_sessions (
  id uuid primary key,
  digest bytea not null unique,
  member_id uuid not null references members (id) on delete cascade,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  address text not null,
  agent text not null
);
create index console_sessions_member on console_sessions (member_id);

-- One-time links: for the first operator, for members, for a new password.
create table console_links (
  id uuid primary key,
  digest bytea not null unique,
  purpose text not null check (purpose in ('first-operator', 'invitation', 'new-password')),
  role text not null check (role in ('operator', 'owner', 'member')),
  account_id uuid references accounts (id) on delete cascade,
  member_id uuid references members (id) on delete cascade,
  email text,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create table sign_in_failures (
  subject text primary key,
  failures integer not null,
  last_at timestamptz not null
);

create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  target text,
  account_id uuid,
  detail text,
  address text
);
create index audit_log_account on audit_log (account_id, id);

create function audit_log_stays() returns trigger language plpgsql as
$$ begin raise exception 'The audit log only grows.'; end $$;
create trigger audit_log_stays before update or delete on audit_log execute function audit_log_stays();

-- What an operator allows or blocks whatever the engines say.
create table list_entries (
  id uuid primary key,
  list text not null check (list in ('allow', 'block')),
  matches text not null check (matches in ('sha256', 'signal')),
  value text not null,
  reason text not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  unique (list, matches, value)
);

-- Requests that were refused, counted by the day.
create table refusals (
  account_id uuid not null,
  day date not null,
  status smallint not null,
  count bigint not null,
  primary key (account_id, day, status)
);

alter table scans add column key_id uuid;
