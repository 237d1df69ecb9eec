-- serves: 0005
-- `scans` is to become a table of partitions, by the time that their ids begin with. The rows that are there stay where
-- they are: their table becomes the partition of all ids up to a bound. This is that bound, not looked at yet, because
-- whoever looks at all rows must not lock them. A week ahead, so that nothing is refused should the next steps wait.

-- Rows that have grown old are folded (ledger-days.ts), day by day: what they leave is to be used again soon.
alter table credit_ledger set (autovacuum_vacuum_scale_factor = 0.05);

do $$
declare
  bound uuid := (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'utc') + interval '8 days') * 1000)::bigint),
    12, '0') || repeat('0', 20))::uuid;
begin
  -- Ids of another kind, or of a clock that was wrong, are moved in the last step.
  if not exists (select from scans where id >= bound) then
    execute format('alter table scans add constraint scans_before check (id < %L) not valid', bound);
  end if;
end $$;
