-- Hosts that URLs of this account may name; null: all that are public. `*.example.com` is everything below it.
alter table accounts add column download_hosts text[];
