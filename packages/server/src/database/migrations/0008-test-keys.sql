-- serves: 0005
-- Keys whose verdicts come from names and not from engines; nothing is charged to them.
alter table api_keys add is_test boolean not null default false;

-- A background scan of such a key has no content, only the case that was asked for.
alter table jobs add test_case text;
alter table jobs drop constraint jobs_check;
alter table jobs add constraint jobs_check check (num_nonnulls(sealed, storage_key, url, test_case) = 1);

-- One row: what this installation is, for as long as it lives. A service that scans nothing must never serve the accounts
-- of one that does.
create table installation (
  single boolean primary key default true check (single),
  is_test boolean not null
);
