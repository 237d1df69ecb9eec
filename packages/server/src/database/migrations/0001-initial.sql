-- The whole schema of the first release. `npm run schema` writes it, as PostgreSQL describes it, to schema.sql.

-- Accounts: definitions that operators change (plans, accounts, api_keys) are kept apart from counters that requests
-- change (balances, rate_windows). The hot rows stay small, and regions can share definitions without sharing counters.

create table plans (
  name text primary key,
  credits_per_period integer not null check (credits_per_period >= 0),
  rate_requests integer not null check (rate_requests > 0),
  rate_period_seconds integer not null check (rate_period_seconds > 0),
  -- A rate for all keys of an account together; null for none.
  account_rate_requests integer check (account_rate_requests > 0),
  account_rate_period_seconds integer check (account_rate_period_seconds > 0),
  -- Active keys that an account may have; null for any number.
  max_keys integer check (max_keys > 0),
  created_at timestamptz not null default now(),
  check ((account_rate_requests is null) = (account_rate_period_seconds is null))
);

insert into plans (name, credits_per_period, rate_requests, rate_period_seconds, max_keys) values
  ('free', 1000, 60, 60, 10),
  ('standard', 100000, 1000, 60, 100),
  ('unlimited', 2000000000, 2000000000, 60, null);

create table accounts (
  id uuid primary key,
  name text not null,
  plan text not null references plans (name),
  -- Overrides of the plan; null means that the plan's value applies.
  credits_per_period integer check (credits_per_period >= 0),
  rate_requests integer check (rate_requests > 0),
  rate_period_seconds integer check (rate_period_seconds > 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  suspended_at timestamptz,
  suspended_reason text,
  -- Sealed with the master key.
  webhook_secret bytea not null,
  previous_webhook_secret bytea,
  previous_webhook_secret_until timestamptz,
  -- Whether the account treats a picture that is "sexy", and nothing worse, as a threat.
  flags_sexy boolean not null default true,
  -- Hosts that URLs of this account may name, `*.example.com` for all below a domain; null allows every public host.
  download_hosts text[],
  -- Receiver of a webhook for each revision of a result; null for none.
  revision_url text,
  -- How many engines must agree on a threat, such as `quorum 2`; null for the policy of the installation.
  verdict_policy text,
  check ((rate_requests is null) = (rate_period_seconds is null))
);

create table balances (
  account_id uuid primary key references accounts (id) on delete cascade,
  -- Credits that the plan gave for this period. credit_limit is this and the credits granted during the period.
  allocated integer not null check (allocated >= 0),
  credit_limit integer not null,
  credit_remaining integer not null check (credit_remaining between 0 and credit_limit),
  -- Periods are counted from the anchor, so that the day of the month survives short months.
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
  revoked_at timestamptz,
  -- Test keys get their verdict from the name of the content. No engine runs, and nothing is charged.
  is_test boolean not null default false,
  -- Restrictions as JSON: the actions, kinds of scans and networks that the key is for. Empty for a key without any.
  restrictions text not null default '',
  -- Email address of the member who created the key in the console.
  created_by text
);

-- Credentials with which the content of URLs is downloaded, for the servers that they name and no other.
create table download_credentials (
  id uuid primary key,
  account_id uuid not null references accounts (id) on delete cascade,
  -- A host such as `https://*.example.com:8443`, or a bucket such as `s3://name?endpoint=https://s3.example.com`.
  target text not null,
  -- Region of a bucket; null for hosts.
  region text,
  -- Headers or an access key. Sealed with the master key, for this account, target and region.
  sealed bytea not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  unique (account_id, target),
  check ((region is not null) = (target like 's3://%'))
);

create index api_keys_account on api_keys (account_id);

create table rate_windows (
  key_id uuid primary key references api_keys (id) on delete cascade,
  started_at timestamptz not null default '-infinity',
  used integer not null default 0,
  -- The value of `used` before the last batch; see admission-counting.ts.
  used_before integer not null default 0,
  last_used_at timestamptz
) with (fillfactor = 50);

-- Requests of all keys of an account in the current window. Counts only while the plan has a rate for accounts.
create table account_windows (
  account_id uuid primary key references accounts (id) on delete cascade,
  started_at timestamptz not null default '-infinity',
  used integer not null default 0,
  used_before integer not null default 0
) with (fillfactor = 50);

-- Webhooks that test keys of an account caused on the latest day.
create table test_webhooks (
  account_id uuid primary key references accounts (id) on delete cascade,
  day date not null,
  count integer not null
) with (fillfactor = 50);

-- The single row says whether this is a test installation. Test mode must never serve the accounts of an installation
-- that scans.
create table installation (
  single boolean primary key default true check (single),
  is_test boolean not null
);

-- In a region that follows another: when the home region was last heard. PostgreSQL forgets that as soon as the
-- connection is lost.
create table home_contact (
  single boolean primary key default true check (single),
  heard_at timestamptz not null
);

-- The single row names the master key that seals secrets and content: a process with another key must not start. The id
-- of the installation stays when the key is rotated; objects in S3 are named after it.
create table master_key (
  single boolean primary key default true check (single),
  id text not null,
  installation_id uuid not null default gen_random_uuid()
);

-- Keys that sign receipts (Ed25519). Public keys stay, so that former receipts can be verified; the sealed private key
-- is erased when another key takes its place.
create table receipt_keys (
  -- the thumbprint of the public key (RFC 7638)
  id text primary key,
  public_key bytea not null check (octet_length(public_key) = 32),
  sealed bytea,
  created_at timestamptz not null default now()
);

-- At most one key signs; the others verify.
create unique index receipt_keys_current on receipt_keys ((true)) where sealed is not null;

-- Scans are partitioned by the time that their ids (UUID version 7) begin with, so that deleting old results is
-- dropping a table; scan-partitions.ts creates and drops the partitions. Scans and ledger rows have no foreign keys:
-- the statement that writes them has just locked the account, and looking it up again made a batch of 64 charges a
-- third slower. Scans have no checks either: PostgreSQL reads and prepares them for each statement that inserts or
-- updates a scan, which made a charge a tenth slower.
create table scans (
  id uuid primary key,
  account_id uuid not null,
  -- malware or nsfw_image
  kind text not null,
  -- sync or async
  mode text not null,
  -- pending, clean, threat or error
  status text not null default 'pending',
  region text not null,
  content_length bigint not null,
  content_type text not null,
  content_name text,
  signals text[],
  metadata jsonb,
  created_at timestamptz not null default now(),
  -- Null while the scan is pending.
  completed_at timestamptz,
  key_id uuid,
  -- The row of a scan is its own debit: its number among the rows of the ledger, and the credits that were left. Null
  -- when nothing was charged.
  ledger_id bigint,
  balance integer
) partition by range (id);

create index scans_account on scans (account_id, created_at);
-- Finds results that are old enough to be deleted. Rows are completed roughly in the order in which they were inserted,
-- so a BRIN index suffices and costs almost nothing to maintain.
create index scans_completed on scans using brin (completed_at);

-- Takes ids for which there is no partition, so that no insert fails for lack of one.
create table scans_default partition of scans default;

-- Scans that were added to a partition that is about to be dropped. scan-partitions.ts adds the trigger to it. The rows
-- matter to a single transaction, so they need not survive a crash.
create unlogged table late_scans (
  scan_id uuid primary key,
  partition name not null
);

create function note_late_scan() returns trigger language plpgsql as
$$
begin
  insert into late_scans (scan_id, partition) values (new.id, tg_table_name);
  return null;
end
$$;

-- Changes of balances that are not the charge of a scan. The amounts of an account, minus its charged scans, always sum
-- to its credit_remaining. Scans that are deleted leave their debits here, one row for each account and day.
create table credit_ledger (
  -- Totals per day have the number of their last debit or refund.
  id bigint generated by default as identity primary key,
  account_id uuid not null,
  kind text not null check (kind in ('opening', 'debit', 'refund', 'grant', 'roll', 'adjust')),
  amount integer not null,
  balance integer not null,
  -- The scan of a refund. A scan has at most one refund.
  scan_id uuid unique,
  note text,
  at timestamptz not null default now()
) with (
  -- The sweeper replaces old rows by totals per day; vacuum frees their space soon.
  autovacuum_vacuum_scale_factor = 0.05
);

create index credit_ledger_account on credit_ledger (account_id, id);
-- The totals per day: one row for the debits of an account's day and one for its refunds.
create unique index credit_ledger_days on credit_ledger (account_id, kind, at)
where scan_id is null and kind in ('debit', 'refund');

-- Counts the requests of one key, and charges and records its scans, with their jobs if they have any: all of them, or
-- nothing. It serves the common case: a live key, no rate for accounts, enough requests and credits left. In any other
-- case it returns a row of nulls and changes nothing, and the statements of admission-statements.ts decide. Small
-- statements that are planned once cost PostgreSQL about half as much as one large statement. The locks are taken in
-- the same order: rate window, balance.
create function charge_scans(
  key_digest bytea, wanted integer, scan_count integer, new_scans json, wanted_flags_sexy boolean,
  wanted_restrictions text,
  new_jobs json, sealed_contents bytea,
  out "accountId" uuid, out restrictions text, out "flagsSexy" boolean, out requests integer, out "periodSeconds" integer,
  out "usedBefore" integer, out "resetsAt" timestamptz, out "creditLimit" integer, out "creditRemaining" integer
) language plpgsql as
$$
declare
  this_key uuid;
  this_account uuid;
  period interval;
begin
  select api_keys.id, accounts.id, api_keys.restrictions, accounts.flags_sexy, coalesce(accounts.rate_requests, plans.rate_requests),
    coalesce(accounts.rate_period_seconds, plans.rate_period_seconds)
  into this_key, this_account, restrictions, "flagsSexy", requests, "periodSeconds"
  from api_keys
  join accounts on accounts.id = api_keys.account_id
  join plans on plans.name = accounts.plan
  -- The balance is read without a lock here and checked again when it changes. This keeps almost every batch that finds
  -- too few credits from counting its requests, which only an error in the log of PostgreSQL could undo.
  join balances on balances.account_id = accounts.id and credit_remaining >= scan_count
    and period_end > now() and period_start <= clock_timestamp()
  where api_keys.digest = key_digest and api_keys.revoked_at is null and not api_keys.is_test
    and (api_keys.expires_at is null or api_keys.expires_at > now())
    and accounts.suspended_at is null and (accounts.expires_at is null or accounts.expires_at > now())
    and (wanted_flags_sexy is null or wanted_flags_sexy = accounts.flags_sexy)
    and (wanted_restrictions is null or wanted_restrictions = api_keys.restrictions)
    and plans.account_rate_requests is null;
  if not found then
    return;
  end if;
  period := make_interval(secs => "periodSeconds");
  if wanted = 0 then
    select used, started_at + period into "usedBefore", "resetsAt" from rate_windows where key_id = this_key;
  else
    update rate_windows set used = used + wanted, used_before = used, last_used_at = now()
    where key_id = this_key and used + wanted <= requests
      and started_at + period > now() and started_at <= clock_timestamp()
    returning used_before, started_at + period into "usedBefore", "resetsAt";
  end if;
  if not found then
    return;
  end if;
  update balances set credit_remaining = credit_remaining - scan_count
  where account_id = this_account and credit_remaining >= scan_count
    and period_end > now() and period_start <= clock_timestamp()
  returning credit_limit, credit_remaining into "creditLimit", "creditRemaining";
  if not found then
    if wanted = 0 then
      return;
    end if;
    -- The balance has changed since it was read. The requests are counted already; the error undoes that.
    raise exception 'account % has less than % credits, or its period is over', this_account, scan_count
      using errcode = 'AS001';
  end if;
  insert into scans (account_id, key_id, ledger_id, balance, id, kind, mode, region, status, content_length,
    content_type, content_name, signals, metadata, created_at, completed_at)
  select this_account, this_key, nextval('credit_ledger_id_seq'), "creditRemaining" + scan_count - n, id, kind, mode,
    region, status, content_length, content_type, content_name, signals, metadata, created_at, completed_at
  from json_to_recordset(new_scans) as scan (
    n integer, id uuid, kind text, mode text, region text, status text, content_length bigint, content_type text,
    content_name text, signals text[], metadata jsonb, created_at timestamptz, completed_at timestamptz
  );
  if new_jobs is not null then
    insert into jobs
      (scan_id, account_id, queue, sealed, storage_key, url, test_case, held_until, callback_url, callback_host)
    select id, this_account, queue, substring(sealed_contents from sealed_from for sealed_bytes), storage_key, url,
      test_case, now() + hold_ms * interval '1 millisecond', callback_url, callback_host
    from json_to_recordset(new_jobs) as job (
      id uuid, queue text, sealed_from integer, sealed_bytes integer, storage_key text, url text, test_case text,
      hold_ms integer, callback_url text, callback_host text
    );
  end if;
  "accountId" := this_account;
end
$$;

-- Background scans. A job exists from the charge until the verdict. No foreign keys, for the same reason as with scans.
create table jobs (
  scan_id uuid primary key,
  account_id uuid not null,
  -- Names the engine and the access to content that a process needs to run the job.
  queue text not null,
  -- Jobs of one account are run first in, first out.
  position bigint generated always as identity,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- Null while the job waits. Otherwise no worker may claim the job before this time: a worker has leased it (then
  -- lease_token is set), or it pauses after a failure.
  held_until timestamptz,
  lease_token uuid,
  -- Content of up to 64 KB; with a storage_key, the key that decrypts the object. Sealed with the master key.
  sealed bytea,
  storage_key text,
  url text,
  callback_url text,
  callback_host text,
  -- A job of a test key has no content, only the name of the test case.
  test_case text,
  check (num_nonnulls(sealed, url, test_case) = 1),
  check (storage_key is null or sealed is not null),
  check (lease_token is null or held_until is not null),
  check ((callback_url is null) = (callback_host is null))
) with (
  -- Each job leaves three dead rows behind, which claims would have to step over.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 2000, toast.autovacuum_vacuum_cost_delay = 0
);

-- Encrypted content does not compress.
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

-- Rows are inserted and deleted in the order of time.
create index idempotency_keys_created on idempotency_keys using brin (created_at);

-- Remote scans: synchronous scans that one node hands to a worker while its caller waits. Nothing is charged for the
-- row itself and nothing is promised, so the table is not written to the WAL and is empty after a crash of the
-- database.
create unlogged table remote_scans (
  id uuid primary key,
  queue text not null,
  options json not null,
  -- As in jobs.
  sealed bytea,
  storage_key text,
  url text,
  created_at timestamptz not null default now(),
  -- The caller waits no longer than this.
  expires_at timestamptz not null,
  attempts integer not null default 0,
  -- Null until the first claim; in the past when no worker holds the lease any more.
  held_until timestamptz,
  lease_token uuid,
  result json,
  failure text check (failure in ('busy', 'down')),
  check (num_nonnulls(sealed, url) = 1),
  check (storage_key is null or sealed is not null),
  check (num_nonnulls(result, failure) <= 1)
) with (
  -- Rows live for about a second.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 2000, toast.autovacuum_vacuum_cost_delay = 0
);

-- Encrypted content does not compress.
alter table remote_scans alter column sealed set storage external;

create index remote_scans_open on remote_scans (created_at) where result is null and failure is null;
create index remote_scans_expiring on remote_scans (expires_at);
create index remote_scans_storage on remote_scans (storage_key) where storage_key is not null;

-- Heartbeats: each process of the installation updates its row every few seconds.
create unlogged table nodes (
  id uuid primary key,
  name text not null,
  roles text[] not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null default now(),
  status text not null,
  reasons text[] not null,
  -- Sentences about what is wrong, by the name of the check.
  faults json not null default '{}',
  engines json not null
) with (fillfactor = 50);

create table deliveries (
  id uuid primary key,
  scan_id uuid not null,
  account_id uuid not null,
  url text not null,
  -- Host and port of the URL: the limit on concurrent deliveries applies to each host.
  host text not null,
  body text not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'dead', 'stopped')),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  -- When a worker may claim the delivery; while a worker has leased it, when the lease ends. Null when no attempt
  -- follows, or none before the paused endpoint is resumed.
  next_at timestamptz default now(),
  lease_token uuid,
  last_status integer,
  last_attempt_at timestamptz,
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
  -- The beginning of the receiver's response, or the reason why there is none.
  answer text not null,
  primary key (delivery_id, id)
);

-- The health of each receiver, recorded from its first delivery on.
create table webhook_endpoints (
  account_id uuid not null,
  url text not null,
  host text not null,
  failing_since timestamptz,
  last_success_at timestamptz,
  last_attempt_at timestamptz not null,
  paused_at timestamptz,
  -- Since when deliveries have failed for good without a success.
  dead_since timestamptz
) with (fillfactor = 70);

-- A URL can be longer than an index entry may be, so the index holds its hash.
create unique index webhook_endpoints_key on webhook_endpoints (account_id, md5(url));
create index webhook_endpoints_dead on webhook_endpoints (account_id) where dead_since is not null;
create index webhook_endpoints_paused on webhook_endpoints (account_id) where paused_at is not null;

-- People who may use the console, one for each email address.
create table members (
  id uuid primary key,
  email text not null,
  name text not null,
  is_operator boolean not null default false,
  -- A suspended person cannot sign in.
  suspended_at timestamptz,
  password_hash text not null,
  -- Sealed with the master key.
  totp_secret bytea,
  totp_confirmed_at timestamptz,
  -- The time step of the last code that was accepted: each code works once.
  totp_step bigint not null default 0,
  -- SHA-256 of the recovery codes that were not used yet.
  recovery_codes bytea[] not null default '{}',
  created_at timestamptz not null default now(),
  last_seen_at timestamptz
);

create unique index members_email on members (lower(email));

-- The accounts that a person belongs to. An operator may belong to none.
create table memberships (
  member_id uuid not null references members (id) on delete cascade,
  account_id uuid not null references accounts (id) on delete cascade,
  role text not null check (role in ('owner', 'member')),
  -- Given by the role mapping of single sign-on, which also takes it away.
  by_sso boolean not null default false,
  created_at timestamptz not null default now(),
  -- Time of the last notice about operators that this person has confirmed.
  notices_seen_at timestamptz,
  primary key (member_id, account_id)
);

create index memberships_account on memberships (account_id);

create table console_sessions (
  id uuid primary key,
  digest bytea not null unique,
  member_id uuid not null references members (id) on delete cascade,
  -- The account that the person works in; null for an operator without one.
  account_id uuid references accounts (id) on delete set null,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  address text not null,
  agent text not null,
  is_sso boolean not null default false
);

create index console_sessions_member on console_sessions (member_id);

-- Persons at an OpenID Connect issuer. Its subject identifies them: an email address can be given to somebody else.
create table sso_identities (
  issuer text not null,
  subject text not null,
  member_id uuid not null unique references members (id) on delete cascade,
  -- Whether the role mapping made the person an operator, and may take that away.
  gives_operator boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (issuer, subject)
);

-- Single sign-ons that were begun. Each can be finished once, by the browser that has the token.
create table sso_attempts (
  digest bytea primary key,
  -- The session of a person who connects their identity; null for a sign-in.
  session_id uuid references console_sessions (id) on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create index sso_attempts_session on sso_attempts (session_id) where session_id is not null;

-- Browsers in which a person has signed in: the guesses of others do not delay them.
create table console_devices (
  member_id uuid not null references members (id) on delete cascade,
  digest bytea not null,
  last_used_at timestamptz not null,
  primary key (member_id, digest)
);

-- One-time links: for the first operator, for invited members, and for a new password.
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

-- Failed attempts by subject (such as an email address with a network), for the growing pause between attempts.
create table sign_in_failures (
  subject text primary key,
  failures integer not null,
  last_at timestamptz not null
);

-- The rows are a chain: each has a number without gaps, and a hash over itself and the hash of the row before. A row
-- that is changed or removed breaks the chain; `assay audit verify` computes it again (audit-chain.ts).
create table audit_log (
  id bigint primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  target text,
  account_id uuid,
  detail text,
  address text,
  hash bytea not null
);

create index audit_log_account on audit_log (account_id, id);

-- The end of the chain, which tells that its last rows were removed. Its lock orders the changes, and only those.
create table audit_head (
  single boolean primary key default true check (single),
  id bigint not null,
  hash bytea not null
);

insert into audit_head (id, hash) values (0, decode(repeat('00', 32), 'hex'));

create function chain_audit_row() returns trigger language plpgsql as
$$
declare
  head audit_head;
begin
  -- Restored rows have their numbers and hashes.
  if current_setting('assay.restoring', true) = 'on' then
    return new;
  end if;
  select * into strict head from audit_head for update;
  new.id := head.id + 1;
  -- The time of the beginning of the transaction could lie before that of a row that a reader has seen already.
  new.at := clock_timestamp();
  new.hash := sha256(convert_to(json_build_array(
    encode(head.hash, 'hex'), new.id, to_char(new.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), new.actor,
    new.action, new.target, new.account_id, new.detail, new.address
  )::text, 'UTF8'));
  update audit_head set id = new.id, hash = new.hash;
  return new;
end
$$;
create trigger audit_log_chain before insert on audit_log for each row execute function chain_audit_row();

-- A restore empties and fills the tables of an installation without accounts; nothing else removes rows.
create function reject_audit_log_change() returns trigger language plpgsql as
$$
begin
  if current_setting('assay.restoring', true) = 'on'
    and (tg_op = 'INSERT' or (tg_op = 'TRUNCATE' and not exists (select from accounts))) then
    return null;
  end if;
  -- The trigger above moves the head.
  if tg_table_name = 'audit_head' and tg_op = 'UPDATE' and pg_trigger_depth() > 1 then
    return null;
  end if;
  raise exception 'The audit log only grows.';
end
$$;
create trigger audit_log_append_only before update or delete or truncate on audit_log
execute function reject_audit_log_change();
create trigger audit_head_append_only before insert or update or delete or truncate on audit_head
execute function reject_audit_log_change();

-- Hashes and signals that operators allow or block, whatever the engines report.
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

-- Lists of known hashes. Rows of a list that is not active count for nothing, so that an import becomes visible at once
-- and as a whole.
create table hash_lists (
  id bigint generated always as identity primary key,
  name text not null,
  verdict text not null check (verdict in ('bad', 'good')),
  -- `import`: scans look the hash up. `signatures`: the engines find it, and only revisions need to know the hash.
  origin text not null check (origin in ('import', 'signatures')),
  state text not null check (state in ('importing', 'active', 'removed')),
  hashes bigint not null default 0,
  created_at timestamptz not null default now(),
  created_by text not null,
  -- While the list is imported: when the import counts as abandoned.
  importing_until timestamptz,
  activated_at timestamptz,
  check ((state = 'importing') = (importing_until is not null))
);

create unique index hash_lists_active on hash_lists (origin, name) where state = 'active';

create table listed_hashes (
  list_id bigint not null,
  sha256 bytea not null,
  -- Null: the name of the list.
  name text,
  primary key (list_id, sha256)
) with (
  -- The hashes of a replaced list are deleted at once.
  autovacuum_vacuum_scale_factor = 0.05
);

-- Changes of what is known about hashes, whose results are still to be found. Workers read all results for one row at a
-- time; rows of which nothing is done yet become one row then.
create table revision_work (
  id bigint generated always as identity primary key,
  -- The changes concern the hashes of these lists, which became active or were removed, and these hashes.
  list_ids bigint[] not null default '{}',
  hashes bytea[] not null default '{}',
  -- The change concerns a file of hash signatures, which becomes a list of its own.
  signature_file text,
  created_at timestamptz not null default now(),
  -- The second pass finds results of scans that were running during the change.
  pass smallint not null default 1,
  -- How far the pass is: the last scan that was read.
  after_scan uuid,
  -- No worker may claim the work before this time: a worker has leased it (then lease_token is set), or it pauses.
  held_until timestamptz,
  lease_token uuid,
  check ((signature_file is null) = (cardinality(list_ids) + cardinality(hashes) > 0)),
  check (lease_token is null or held_until is not null)
);

-- New knowledge about completed results. The results stay as they were; the last revision of one counts.
create table scan_revisions (
  id bigint generated always as identity primary key,
  scan_id uuid not null,
  account_id uuid not null,
  status text not null check (status in ('clean', 'threat', 'error')),
  -- The status before: that of the result, or of the revision before.
  previous_status text not null,
  reason text not null,
  at timestamptz not null default now()
);

create index scan_revisions_scan on scan_revisions (scan_id, id);
create index scan_revisions_account on scan_revisions (account_id, id);

-- Sources of signatures and rules: downloads of other publishers, with the state of their last update. An update is due
-- at next_at, and one process at a time runs it, under the lease.
create table signature_sources (
  name text primary key check (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(name) <= 40),
  url text not null,
  file_name text,
  every_hours integer not null check (every_hours between 0 and 720),
  max_megabytes integer not null check (max_megabytes between 1 and 256),
  sha256 text,
  minisign_key text,
  publisher text,
  licence text,
  released text[] not null default '{}',
  etag text,
  last_modified text,
  signatures integer,
  held jsonb not null default '[]',
  refused jsonb not null default '[]',
  tested_files integer,
  checked_at timestamptz,
  changed_at timestamptz,
  attempted_at timestamptz,
  error text,
  next_at timestamptz default now(),
  lease_token uuid,
  leased_until timestamptz,
  created_at timestamptz not null default now()
);

-- Signature and rule files of the operator and of sources, which every node with engines copies to its data directory.
create table signature_files (
  name text primary key check (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
  content bytea not null,
  sha256 bytea not null,
  changed_at timestamptz not null default now(),
  source text references signature_sources (name) on delete cascade
);
create index signature_files_source on signature_files (source) where source is not null;
-- Uncompressed, so that a part of a file is read without the rest.
alter table signature_files alter column content set storage external;

-- Rejected requests, counted by account, day and HTTP status.
create table rejected_requests (
  account_id uuid not null,
  day date not null,
  status smallint not null,
  count bigint not null,
  primary key (account_id, day, status)
);

-- Activity of each process by minute, for the charts of the console. Other processes of the minute are added when it is
-- read. Rows are kept for two days.
create table node_minutes (
  minute timestamptz not null,
  node_id uuid not null,
  malware_clean integer not null,
  malware_threat integer not null,
  malware_error integer not null,
  image_clean integer not null,
  image_threat integer not null,
  image_error integer not null,
  -- Milliseconds that the engines worked or were waited for.
  malware_ms bigint not null,
  image_ms bigint not null,
  -- Synchronous scans by the time of their response: one count for each bound of the histogram, and one beyond.
  latency integer[] not null,
  webhooks_delivered integer not null,
  webhooks_failed integer not null,
  memory_bytes bigint not null,
  -- Of the whole installation, as this process saw it.
  jobs_waiting integer not null,
  jobs_oldest_seconds real not null,
  primary key (minute, node_id)
);

-- Places that alerts are sent to.
create table alert_channels (
  id uuid primary key,
  -- Null for a channel of the operators, which gets alerts about the installation.
  account_id uuid references accounts (id) on delete cascade,
  kind text not null check (kind in ('email', 'webhook', 'slack', 'teams')),
  email text,
  -- URL and, for webhooks of operators, the secret that signs them. Sealed with the master key: the URLs of chats are
  -- credentials.
  sealed bytea,
  topics text[] not null,
  threats_per_hour integer not null check (threats_per_hour > 0),
  created_by text not null,
  created_at timestamptz not null default now(),
  -- The last message that arrived, and why a later one did not; null without one.
  sent_at timestamptz,
  failure text,
  check ((kind = 'email') = (email is not null)),
  check (num_nonnulls(email, sealed) = 1)
);

create index alert_channels_account on alert_channels (account_id);

-- When a process last looked for conditions, so that the processes do not do it more often together than one alone.
create unlogged table alert_look (
  single boolean primary key default true check (single),
  looked_at timestamptz not null default now()
) with (fillfactor = 50);

-- Conditions that hold now, for each channel that wants to hear of them.
create table alerts (
  channel_id uuid not null references alert_channels (id) on delete cascade,
  -- Identifies the condition: its topic and what it is about, such as a node.
  subject text not null,
  topic text not null,
  text text not null,
  -- The node that the condition is about; null for other conditions.
  node_name text,
  -- How long the condition must hold before it is told, and be absent before its end is told.
  hold_ms float8 not null,
  since timestamptz not null default now(),
  told_at timestamptz,
  absent_since timestamptz,
  primary key (channel_id, subject)
);

-- Messages to send. A row is deleted when its message has arrived, or no attempt is left.
create table alert_messages (
  id uuid primary key default gen_random_uuid(),
  channel_id uuid not null references alert_channels (id) on delete cascade,
  state text not null check (state in ('firing', 'resolved')),
  topic text not null,
  text text not null,
  since timestamptz not null,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- When a worker may claim the message; while a worker has leased it, when the lease ends.
  next_at timestamptz not null default now(),
  lease_token uuid
);

create index alert_messages_due on alert_messages (next_at);
