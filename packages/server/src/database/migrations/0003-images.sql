-- Whether a picture that is sexy, and no more than that, is a threat to this account.
alter table accounts add column flags_sexy boolean not null default true;
