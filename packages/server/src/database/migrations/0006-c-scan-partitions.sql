-- serves: 0005
-- No row is read or moved, as a rule: only names change. For those who use the table it is the same one as before.
lock table scans in access exclusive mode;
alter table scans rename to scans_before;
alter index scans_pkey rename to scans_before_pkey;
alter index scans_account rename to scans_before_account;
alter index scans_completed rename to scans_before_completed;

-- The names are those of before: a partition is attached by them.
create table scans (
  id uuid primary key,
  account_id uuid not null,
  kind text not null constraint scans_kind_check check (kind in ('malware', 'nsfw_image')),
  mode text not null constraint scans_mode_check check (mode in ('sync', 'async')),
  status text not null default 'pending' constraint scans_status_check check (status in ('pending', 'clean', 'threat', 'error')),
  region text not null,
  content_length bigint not null constraint scans_content_length_check check (content_length >= 0),
  content_type text not null,
  content_name text,
  signals text[],
  metadata jsonb,
  created_at timestamptz not null default now(),
  completed_at timestamptz,
  constraint scans_check check ((status = 'pending') = (completed_at is null))
) partition by range (id);

create index scans_account on scans (account_id, created_at);
create index scans_completed on scans using brin (completed_at);

-- For ids that no other partition is there for: no insert ever fails for want of one.
create table scans_default (like scans including all);
alter table scans attach partition scans_default default;

do $$
declare
  bound uuid := (
    select substring(pg_get_constraintdef(oid) from '[0-9a-f]{8}-[0-9a-f-]{27}')::uuid
    from pg_constraint where conrelid = 'scans_before'::regclass and conname = 'scans_before'
  );
begin
  if not exists (select from scans_before) then
    drop table scans_before;
    return;
  end if;
  if bound is null then
    bound := (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'utc') + interval '2 days') * 1000)::bigint),
      12, '0') || repeat('0', 20))::uuid;
    with moved as (delete from scans_before where id >= bound returning *)
    insert into scans_default select * from moved;
  end if;
  execute format('alter table scans attach partition scans_before for values from (minvalue) to (%L)', bound);
  alter table scans_before drop constraint if exists scans_before;
end $$;
