-- Made by `npm run schema` from the migrations; a test keeps it true. Do not edit.

create table account_windows (
  account_id uuid not null,
  started_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  used integer not null default 0,
  used_before integer not null default 0,
  constraint account_windows_pkey PRIMARY KEY (account_id),
  constraint account_windows_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
) with (fillfactor = 50);

create table accounts (
  id uuid not null,
  name text not null,
  plan text not null,
  credits_per_period integer,
  rate_requests integer,
  rate_period_seconds integer,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  suspended_at timestamp with time zone,
  suspended_reason text,
  webhook_secret bytea not null,
  previous_webhook_secret bytea,
  previous_webhook_secret_until timestamp with time zone,
  flags_sexy boolean not null default true,
  download_hosts text[],
  revision_url text,
  verdict_policy text,
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_plan_fkey FOREIGN KEY (plan) REFERENCES plans(name),
  constraint accounts_check CHECK (((rate_requests IS NULL) = (rate_period_seconds IS NULL))),
  constraint accounts_credits_per_period_check CHECK ((credits_per_period >= 0)),
  constraint accounts_rate_period_seconds_check CHECK ((rate_period_seconds > 0)),
  constraint accounts_rate_requests_check CHECK ((rate_requests > 0))
);

create table alert_channels (
  id uuid not null,
  account_id uuid,
  kind text not null,
  email text,
  sealed bytea,
  topics text[] not null,
  threats_per_hour integer not null,
  created_by text not null,
  created_at timestamp with time zone not null default now(),
  sent_at timestamp with time zone,
  failure text,
  constraint alert_channels_pkey PRIMARY KEY (id),
  constraint alert_channels_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint alert_channels_check CHECK (((kind = 'email'::text) = (email IS NOT NULL))),
  constraint alert_channels_check1 CHECK ((num_nonnulls(email, sealed) = 1)),
  constraint alert_channels_kind_check CHECK ((kind = ANY (ARRAY['email'::text, 'webhook'::text, 'slack'::text, 'teams'::text]))),
  constraint alert_channels_threats_per_hour_check CHECK ((threats_per_hour > 0))
);

CREATE INDEX alert_channels_account ON public.alert_channels USING btree (account_id);

create unlogged table alert_look (
  single boolean not null default true,
  looked_at timestamp with time zone not null default now(),
  constraint alert_look_pkey PRIMARY KEY (single),
  constraint alert_look_single_check CHECK (single)
) with (fillfactor = 50);

create table alert_messages (
  id uuid not null default gen_random_uuid(),
  channel_id uuid not null,
  state text not null,
  topic text not null,
  text text not null,
  since timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  attempts integer not null default 0,
  next_at timestamp with time zone not null default now(),
  lease_token uuid,
  constraint alert_messages_pkey PRIMARY KEY (id),
  constraint alert_messages_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES alert_channels(id) ON DELETE CASCADE,
  constraint alert_messages_state_check CHECK ((state = ANY (ARRAY['firing'::text, 'resolved'::text])))
);

CREATE INDEX alert_messages_due ON public.alert_messages USING btree (next_at);

create table alerts (
  channel_id uuid not null,
  subject text not null,
  topic text not null,
  text text not null,
  node_name text,
  hold_ms double precision not null,
  since timestamp with time zone not null default now(),
  told_at timestamp with time zone,
  absent_since timestamp with time zone,
  constraint alerts_pkey PRIMARY KEY (channel_id, subject),
  constraint alerts_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES alert_channels(id) ON DELETE CASCADE
);

create table api_keys (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  prefix text not null,
  digest bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  is_test boolean not null default false,
  restrictions text not null default ''::text,
  created_by text,
  constraint api_keys_digest_key UNIQUE (digest),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);

CREATE INDEX api_keys_account ON public.api_keys USING btree (account_id);

create table audit_head (
  single boolean not null default true,
  id bigint not null,
  hash bytea not null,
  constraint audit_head_pkey PRIMARY KEY (single),
  constraint audit_head_single_check CHECK (single)
);

create table audit_log (
  id bigint not null,
  at timestamp with time zone not null default now(),
  actor text not null,
  action text not null,
  target text,
  account_id uuid,
  detail text,
  address text,
  hash bytea not null,
  constraint audit_log_pkey PRIMARY KEY (id)
);

CREATE INDEX audit_log_account ON public.audit_log USING btree (account_id, id);

create table balances (
  account_id uuid not null,
  allocated integer not null,
  credit_limit integer not null,
  credit_remaining integer not null,
  period_anchor timestamp with time zone not null,
  period_start timestamp with time zone not null,
  period_end timestamp with time zone not null,
  constraint balances_pkey PRIMARY KEY (account_id),
  constraint balances_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint balances_allocated_check CHECK ((allocated >= 0)),
  constraint balances_check CHECK (((credit_remaining >= 0) AND (credit_remaining <= credit_limit))),
  constraint balances_check1 CHECK ((period_end > period_start))
) with (fillfactor = 50);

create table console_devices (
  member_id uuid not null,
  digest bytea not null,
  last_used_at timestamp with time zone not null,
  constraint console_devices_pkey PRIMARY KEY (member_id, digest),
  constraint console_devices_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE
);

create table console_links (
  id uuid not null,
  digest bytea not null,
  purpose text not null,
  role text not null,
  account_id uuid,
  member_id uuid,
  email text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint console_links_digest_key UNIQUE (digest),
  constraint console_links_pkey PRIMARY KEY (id),
  constraint console_links_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint console_links_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint console_links_purpose_check CHECK ((purpose = ANY (ARRAY['first-operator'::text, 'invitation'::text, 'new-password'::text]))),
  constraint console_links_role_check CHECK ((role = ANY (ARRAY['operator'::text, 'owner'::text, 'member'::text])))
);

create table console_sessions (
  id uuid not null,
  digest bytea not null,
  member_id uuid not null,
  account_id uuid,
  created_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  address text not null,
  agent text not null,
  is_sso boolean not null default false,
  constraint console_sessions_digest_key UNIQUE (digest),
  constraint console_sessions_pkey PRIMARY KEY (id),
  constraint console_sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE SET NULL,
  constraint console_sessions_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE
);

CREATE INDEX console_sessions_member ON public.console_sessions USING btree (member_id);

create table credit_ledger (
  id bigint not null generated by default as identity,
  account_id uuid not null,
  kind text not null,
  amount integer not null,
  balance integer not null,
  scan_id uuid,
  note text,
  at timestamp with time zone not null default now(),
  constraint credit_ledger_scan_id_key UNIQUE (scan_id),
  constraint credit_ledger_pkey PRIMARY KEY (id),
  constraint credit_ledger_kind_check CHECK ((kind = ANY (ARRAY['opening'::text, 'debit'::text, 'refund'::text, 'grant'::text, 'roll'::text, 'adjust'::text])))
) with (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX credit_ledger_account ON public.credit_ledger USING btree (account_id, id);
CREATE UNIQUE INDEX credit_ledger_days ON public.credit_ledger USING btree (account_id, kind, at) WHERE ((scan_id IS NULL) AND (kind = ANY (ARRAY['debit'::text, 'refund'::text])));

create table deliveries (
  id uuid not null,
  scan_id uuid not null,
  account_id uuid not null,
  url text not null,
  host text not null,
  body text not null,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  created_at timestamp with time zone not null default now(),
  next_at timestamp with time zone default now(),
  lease_token uuid,
  last_status integer,
  last_attempt_at timestamp with time zone,
  constraint deliveries_pkey PRIMARY KEY (id),
  constraint deliveries_check CHECK (((state = 'pending'::text) OR (next_at IS NULL))),
  constraint deliveries_check1 CHECK (((lease_token IS NULL) OR (next_at IS NOT NULL))),
  constraint deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text, 'stopped'::text])))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 2000);

CREATE INDEX deliveries_account ON public.deliveries USING btree (account_id, created_at);
CREATE INDEX deliveries_created ON public.deliveries USING brin (created_at);
CREATE INDEX deliveries_due ON public.deliveries USING btree (host, next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX deliveries_leased ON public.deliveries USING btree (host, next_at) WHERE (lease_token IS NOT NULL);

create table delivery_attempts (
  id bigint not null generated always as identity,
  delivery_id uuid not null,
  at timestamp with time zone not null,
  status integer,
  duration_ms integer not null,
  answer text not null,
  constraint delivery_attempts_pkey PRIMARY KEY (delivery_id, id)
);

create table download_credentials (
  id uuid not null,
  account_id uuid not null,
  target text not null,
  region text,
  sealed bytea not null,
  created_by text not null,
  created_at timestamp with time zone not null default now(),
  constraint download_credentials_account_id_target_key UNIQUE (account_id, target),
  constraint download_credentials_pkey PRIMARY KEY (id),
  constraint download_credentials_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint download_credentials_check CHECK (((region IS NOT NULL) = (target ~~ 's3://%'::text)))
);

create table hash_lists (
  id bigint not null generated always as identity,
  name text not null,
  verdict text not null,
  origin text not null,
  state text not null,
  hashes bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  created_by text not null,
  importing_until timestamp with time zone,
  activated_at timestamp with time zone,
  constraint hash_lists_pkey PRIMARY KEY (id),
  constraint hash_lists_check CHECK (((state = 'importing'::text) = (importing_until IS NOT NULL))),
  constraint hash_lists_origin_check CHECK ((origin = ANY (ARRAY['import'::text, 'signatures'::text]))),
  constraint hash_lists_state_check CHECK ((state = ANY (ARRAY['importing'::text, 'active'::text, 'removed'::text]))),
  constraint hash_lists_verdict_check CHECK ((verdict = ANY (ARRAY['bad'::text, 'good'::text])))
);

CREATE UNIQUE INDEX hash_lists_active ON public.hash_lists USING btree (origin, name) WHERE (state = 'active'::text);

create table home_contact (
  single boolean not null default true,
  heard_at timestamp with time zone not null,
  constraint home_contact_pkey PRIMARY KEY (single),
  constraint home_contact_single_check CHECK (single)
);

create table idempotency_keys (
  account_id uuid not null,
  operation text not null,
  key text not null,
  fingerprint bytea not null,
  scan_id uuid not null,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_keys_pkey PRIMARY KEY (account_id, operation, key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);

CREATE INDEX idempotency_keys_created ON public.idempotency_keys USING brin (created_at);

create table installation (
  single boolean not null default true,
  is_test boolean not null,
  constraint installation_pkey PRIMARY KEY (single),
  constraint installation_single_check CHECK (single)
);

create table jobs (
  scan_id uuid not null,
  account_id uuid not null,
  queue text not null,
  position bigint not null generated always as identity,
  created_at timestamp with time zone not null default now(),
  attempts integer not null default 0,
  held_until timestamp with time zone,
  lease_token uuid,
  sealed bytea,
  storage_key text,
  url text,
  callback_url text,
  callback_host text,
  test_case text,
  constraint jobs_pkey PRIMARY KEY (scan_id),
  constraint jobs_check CHECK ((num_nonnulls(sealed, url, test_case) = 1)),
  constraint jobs_check1 CHECK (((storage_key IS NULL) OR (sealed IS NOT NULL))),
  constraint jobs_check2 CHECK (((lease_token IS NULL) OR (held_until IS NOT NULL))),
  constraint jobs_check3 CHECK (((callback_url IS NULL) = (callback_host IS NULL)))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);

CREATE INDEX jobs_held ON public.jobs USING btree (held_until) WHERE (held_until IS NOT NULL);
CREATE INDEX jobs_storage ON public.jobs USING btree (storage_key) WHERE (storage_key IS NOT NULL);
CREATE INDEX jobs_waiting ON public.jobs USING btree (account_id, "position") INCLUDE (queue) WHERE (held_until IS NULL);

create unlogged table late_scans (
  scan_id uuid not null,
  partition name not null,
  constraint late_scans_pkey PRIMARY KEY (scan_id)
);

create table list_entries (
  id uuid not null,
  list text not null,
  matches text not null,
  value text not null,
  reason text not null,
  created_by text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  constraint list_entries_list_matches_value_key UNIQUE (list, matches, value),
  constraint list_entries_pkey PRIMARY KEY (id),
  constraint list_entries_list_check CHECK ((list = ANY (ARRAY['allow'::text, 'block'::text]))),
  constraint list_entries_matches_check CHECK ((matches = ANY (ARRAY['sha256'::text, 'signal'::text])))
);

create table listed_hashes (
  list_id bigint not null,
  sha256 bytea not null,
  name text,
  constraint listed_hashes_pkey PRIMARY KEY (list_id, sha256)
) with (autovacuum_vacuum_scale_factor = 0.05);

create table master_key (
  single boolean not null default true,
  id text not null,
  installation_id uuid not null default gen_random_uuid(),
  constraint master_key_pkey PRIMARY KEY (single),
  constraint master_key_single_check CHECK (single)
);

create table members (
  id uuid not null,
  email text not null,
  name text not null,
  is_operator boolean not null default false,
  suspended_at timestamp with time zone,
  password_hash text not null,
  totp_secret bytea,
  totp_confirmed_at timestamp with time zone,
  totp_step bigint not null default 0,
  recovery_codes bytea[] not null default '{}'::bytea[],
  created_at timestamp with time zone not null default now(),
  last_seen_at timestamp with time zone,
  constraint members_pkey PRIMARY KEY (id)
);

CREATE UNIQUE INDEX members_email ON public.members USING btree (lower(email));

create table memberships (
  member_id uuid not null,
  account_id uuid not null,
  role text not null,
  by_sso boolean not null default false,
  created_at timestamp with time zone not null default now(),
  notices_seen_at timestamp with time zone,
  constraint memberships_pkey PRIMARY KEY (member_id, account_id),
  constraint memberships_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint memberships_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);

CREATE INDEX memberships_account ON public.memberships USING btree (account_id);

create table node_minutes (
  minute timestamp with time zone not null,
  node_id uuid not null,
  malware_clean integer not null,
  malware_threat integer not null,
  malware_error integer not null,
  image_clean integer not null,
  image_threat integer not null,
  image_error integer not null,
  malware_ms bigint not null,
  image_ms bigint not null,
  latency integer[] not null,
  webhooks_delivered integer not null,
  webhooks_failed integer not null,
  memory_bytes bigint not null,
  jobs_waiting integer not null,
  jobs_oldest_seconds real not null,
  constraint node_minutes_pkey PRIMARY KEY (minute, node_id)
);

create unlogged table nodes (
  id uuid not null,
  name text not null,
  roles text[] not null,
  version text not null,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null default now(),
  status text not null,
  reasons text[] not null,
  faults json not null default '{}'::json,
  engines json not null,
  constraint nodes_pkey PRIMARY KEY (id)
) with (fillfactor = 50);

create table plans (
  name text not null,
  credits_per_period integer not null,
  rate_requests integer not null,
  rate_period_seconds integer not null,
  account_rate_requests integer,
  account_rate_period_seconds integer,
  max_keys integer,
  created_at timestamp with time zone not null default now(),
  constraint plans_pkey PRIMARY KEY (name),
  constraint plans_account_rate_period_seconds_check CHECK ((account_rate_period_seconds > 0)),
  constraint plans_account_rate_requests_check CHECK ((account_rate_requests > 0)),
  constraint plans_check CHECK (((account_rate_requests IS NULL) = (account_rate_period_seconds IS NULL))),
  constraint plans_credits_per_period_check CHECK ((credits_per_period >= 0)),
  constraint plans_max_keys_check CHECK ((max_keys > 0)),
  constraint plans_rate_period_seconds_check CHECK ((rate_period_seconds > 0)),
  constraint plans_rate_requests_check CHECK ((rate_requests > 0))
);

create table rate_windows (
  key_id uuid not null,
  started_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  used integer not null default 0,
  used_before integer not null default 0,
  last_used_at timestamp with time zone,
  constraint rate_windows_pkey PRIMARY KEY (key_id),
  constraint rate_windows_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE
) with (fillfactor = 50);

create table receipt_keys (
  id text not null,
  public_key bytea not null,
  sealed bytea,
  created_at timestamp with time zone not null default now(),
  constraint receipt_keys_pkey PRIMARY KEY (id),
  constraint receipt_keys_public_key_check CHECK ((octet_length(public_key) = 32))
);

CREATE UNIQUE INDEX receipt_keys_current ON public.receipt_keys USING btree ((true)) WHERE (sealed IS NOT NULL);

create table rejected_requests (
  account_id uuid not null,
  day date not null,
  status smallint not null,
  count bigint not null,
  constraint rejected_requests_pkey PRIMARY KEY (account_id, day, status)
);

create unlogged table remote_scans (
  id uuid not null,
  queue text not null,
  options json not null,
  sealed bytea,
  storage_key text,
  url text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  attempts integer not null default 0,
  held_until timestamp with time zone,
  lease_token uuid,
  result json,
  failure text,
  constraint remote_scans_pkey PRIMARY KEY (id),
  constraint remote_scans_check CHECK ((num_nonnulls(sealed, url) = 1)),
  constraint remote_scans_check1 CHECK (((storage_key IS NULL) OR (sealed IS NOT NULL))),
  constraint remote_scans_check2 CHECK ((num_nonnulls(result, failure) <= 1)),
  constraint remote_scans_failure_check CHECK ((failure = ANY (ARRAY['busy'::text, 'down'::text])))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX remote_scans_expiring ON public.remote_scans USING btree (expires_at);
CREATE INDEX remote_scans_open ON public.remote_scans USING btree (created_at) WHERE ((result IS NULL) AND (failure IS NULL));
CREATE INDEX remote_scans_storage ON public.remote_scans USING btree (storage_key) WHERE (storage_key IS NOT NULL);

create table revision_work (
  id bigint not null generated always as identity,
  list_ids bigint[] not null default '{}'::bigint[],
  hashes bytea[] not null default '{}'::bytea[],
  signature_file text,
  created_at timestamp with time zone not null default now(),
  pass smallint not null default 1,
  after_scan uuid,
  held_until timestamp with time zone,
  lease_token uuid,
  constraint revision_work_pkey PRIMARY KEY (id),
  constraint revision_work_check CHECK (((signature_file IS NULL) = ((cardinality(list_ids) + cardinality(hashes)) > 0))),
  constraint revision_work_check1 CHECK (((lease_token IS NULL) OR (held_until IS NOT NULL)))
);

create table scan_revisions (
  id bigint not null generated always as identity,
  scan_id uuid not null,
  account_id uuid not null,
  status text not null,
  previous_status text not null,
  reason text not null,
  at timestamp with time zone not null default now(),
  constraint scan_revisions_pkey PRIMARY KEY (id),
  constraint scan_revisions_status_check CHECK ((status = ANY (ARRAY['clean'::text, 'threat'::text, 'error'::text])))
);

CREATE INDEX scan_revisions_account ON public.scan_revisions USING btree (account_id, id);
CREATE INDEX scan_revisions_scan ON public.scan_revisions USING btree (scan_id, id);

create table scans (
  id uuid not null,
  account_id uuid not null,
  kind text not null,
  mode text not null,
  status text not null default 'pending'::text,
  region text not null,
  content_length bigint not null,
  content_type text not null,
  content_name text,
  signals text[],
  metadata jsonb,
  created_at timestamp with time zone not null default now(),
  completed_at timestamp with time zone,
  key_id uuid,
  ledger_id bigint,
  balance integer,
  constraint scans_pkey PRIMARY KEY (id)
) partition by range (id);

CREATE INDEX scans_account ON ONLY public.scans USING btree (account_id, created_at);
CREATE INDEX scans_completed ON ONLY public.scans USING brin (completed_at);

create table sign_in_failures (
  subject text not null,
  failures integer not null,
  last_at timestamp with time zone not null,
  constraint sign_in_failures_pkey PRIMARY KEY (subject)
);

create table signature_files (
  name text not null,
  content bytea not null,
  sha256 bytea not null,
  changed_at timestamp with time zone not null default now(),
  source text,
  constraint signature_files_pkey PRIMARY KEY (name),
  constraint signature_files_source_fkey FOREIGN KEY (source) REFERENCES signature_sources(name) ON DELETE CASCADE,
  constraint signature_files_name_check CHECK ((name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'::text))
);

CREATE INDEX signature_files_source ON public.signature_files USING btree (source) WHERE (source IS NOT NULL);

create table signature_sources (
  name text not null,
  url text not null,
  file_name text,
  every_hours integer not null,
  max_megabytes integer not null,
  sha256 text,
  minisign_key text,
  publisher text,
  licence text,
  released text[] not null default '{}'::text[],
  etag text,
  last_modified text,
  signatures integer,
  held jsonb not null default '[]'::jsonb,
  refused jsonb not null default '[]'::jsonb,
  tested_files integer,
  checked_at timestamp with time zone,
  changed_at timestamp with time zone,
  attempted_at timestamp with time zone,
  error text,
  next_at timestamp with time zone default now(),
  lease_token uuid,
  leased_until timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint signature_sources_pkey PRIMARY KEY (name),
  constraint signature_sources_every_hours_check CHECK (((every_hours >= 0) AND (every_hours <= 720))),
  constraint signature_sources_max_megabytes_check CHECK (((max_megabytes >= 1) AND (max_megabytes <= 256))),
  constraint signature_sources_name_check CHECK (((name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(name) <= 40)))
);

create table sso_attempts (
  digest bytea not null,
  session_id uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint sso_attempts_pkey PRIMARY KEY (digest),
  constraint sso_attempts_session_id_fkey FOREIGN KEY (session_id) REFERENCES console_sessions(id) ON DELETE CASCADE
);

CREATE INDEX sso_attempts_session ON public.sso_attempts USING btree (session_id) WHERE (session_id IS NOT NULL);

create table sso_identities (
  issuer text not null,
  subject text not null,
  member_id uuid not null,
  gives_operator boolean not null default false,
  created_at timestamp with time zone not null default now(),
  constraint sso_identities_member_id_key UNIQUE (member_id),
  constraint sso_identities_pkey PRIMARY KEY (issuer, subject),
  constraint sso_identities_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE
);

create table test_webhooks (
  account_id uuid not null,
  day date not null,
  count integer not null,
  constraint test_webhooks_pkey PRIMARY KEY (account_id),
  constraint test_webhooks_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
) with (fillfactor = 50);

create table webhook_endpoints (
  account_id uuid not null,
  url text not null,
  host text not null,
  failing_since timestamp with time zone,
  last_success_at timestamp with time zone,
  last_attempt_at timestamp with time zone not null,
  paused_at timestamp with time zone,
  dead_since timestamp with time zone
) with (fillfactor = 70);

CREATE INDEX webhook_endpoints_dead ON public.webhook_endpoints USING btree (account_id) WHERE (dead_since IS NOT NULL);
CREATE INDEX webhook_endpoints_paused ON public.webhook_endpoints USING btree (account_id) WHERE (paused_at IS NOT NULL);
CREATE UNIQUE INDEX webhook_endpoints_key ON public.webhook_endpoints USING btree (account_id, md5(url));
