-- For finding results that are old enough to be forgotten. Results are completed roughly in the order of their rows, so an
-- index of ranges is enough, and it costs almost nothing to keep.
create index scans_completed on scans using brin (completed_at);
