-- Scans that wait for a worker. A row is there from the charge until the verdict, and no longer. No foreign keys, as with
-- scans: every row is written by a statement that has the other one in hand.
create table jobs (
  scan_id uuid primary key,
  account_id uuid not null,
  -- What a process must have to do it: an engine for its kind, and a way to its content.
  queue text not null,
  -- First in, first out within an account.
  position bigint generated always as identity,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- Null: it waits. Else nobody may take it before: a worker has it (then there is a token), or it rests after a failure.
  held_until timestamptz,
  lease_token uuid,
  sealed bytea,
  storage_key text,
  url text,
  callback_url text,
  callback_host text,
  check (num_nonnulls(sealed, storage_key, url) = 1),
  check (lease_token is null or held_until is not null),
  check ((callback_url is null) = (callback_host is null))
) with (
  -- Each job leaves three dead rows behind, and claims would have to step over them.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 2000, toast.autovacuum_vacuum_cost_delay = 0
);

-- What is encrypted does not get smaller.
alter table jobs alter column sealed set storage external;

create index jobs_waiting on jobs (account_id, position) include (queue) where held_until is null;
create index jobs_held on jobs (held_until) where held_until is not null;
create index jobs_storage on jobs (storage_key) where storage_key is not null;

create table idempotency_keys (
  account_id uuid not null,
  operation text not null,
  key text not null,
  fingerprint bytea not null,
  scan_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (account_id, operation, key)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 10000
);

-- Rows come in the order of time and go in it.
create index idempotency_keys_created on idempotency_keys using brin (created_at);

create table deliveries (
  id uuid primary key,
  scan_id uuid not null,
  account_id uuid not null,
  url text not null,
  -- Of the address, with its port: what the bound on deliveries at once is for.
  host text not null,
  body text not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'dead', 'stopped')),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  -- When it may be taken, for the first time or again; while somebody has it, when his lease runs out. Null: never, or
  -- when its endpoint is paused no more.
  next_at timestamptz default now(),
  lease_token uuid,
  last_status integer,
  -- When it was last tried.
  tried_at timestamptz,
  check (state = 'pending' or next_at is null),
  check (lease_token is null or next_at is not null)
) with (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 2000
);

create index deliveries_due on deliveries (host, next_at) where next_at is not null;
create index deliveries_leased on deliveries (host, next_at) where lease_token is not null;
create index deliveries_account on deliveries (account_id, created_at);
create index deliveries_created on deliveries using brin (created_at);

create table delivery_attempts (
  id bigint generated always as identity,
  delivery_id uuid not null,
  at timestamptz not null,
  status integer,
  duration_ms integer not null,
  answer text not null,
  primary key (delivery_id, id)
);

-- What is known of a receiver after its first delivery.
create table webhook_endpoints (
  account_id uuid not null,
  url text not null,
  host text not null,
  failing_since timestamptz,
  last_success_at timestamptz,
  last_attempt_at timestamptz not null,
  paused_at timestamptz
) with (fillfactor = 70);

-- Addresses can be longer than an index takes.
create unique index webhook_endpoints_key on webhook_endpoints (account_id, md5(url));
create index webhook_endpoints_paused on webhook_endpoints (account_id) where paused_at is not null;
