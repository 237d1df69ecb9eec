-- serves: 0005
-- A look at content that one node asks of another while its caller waits. It is no job: nothing is charged for it and
-- nothing is promised, so neither table is written to the log of the database, and both are empty after its crash.
create unlogged table remote_scans (
  id uuid primary key,
  -- What a node must have to do it, as with jobs.
  queue text not null,
  asked json not null,
  sealed bytea,
  storage_key text,
  url text,
  created_at timestamptz not null default now(),
  -- Nobody waits for it any longer than this.
  expires_at timestamptz not null,
  attempts integer not null default 0,
  -- Null: nobody has had it. Past: nobody has it now.
  held_until timestamptz,
  lease_token uuid,
  outcome json,
  failure text check (failure in ('busy', 'down')),
  check (num_nonnulls(sealed, storage_key, url) = 1),
  check (num_nonnulls(outcome, failure) <= 1)
) with (
  -- Rows come and go within a second.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 2000, toast.autovacuum_vacuum_cost_delay = 0
);

-- What is encrypted does not get smaller.
alter table remote_scans alter column sealed set storage external;

create index errands_open on remote_scans (created_at) where outcome is null and failure is null;
create index errands_expiring on remote_scans (expires_at);
create index errands_storage on remote_scans (storage_key) where storage_key is not null;

-- Every process of the installation says here that it is alive.
create unlogged table nodes (
  id uuid primary key,
  name text not null,
  roles text[] not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null default now(),
  status text not null,
  reasons text[] not null,
  engines json not null
) with (fillfactor = 50);
