select id, kind, status, content_length, content_type, content_name, signals, metadata, created_at, completed_at
from scans where id = $1 and account_id = $2 and kind = $3
