delete from scans where id in (select id from scans where completed_at < $1 limit 5000)
