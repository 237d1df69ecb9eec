-- serves: 0005
-- concurrently: credit_ledger_days
-- One row of an account for the debits of a day, and one for the refunds, when they are too old to be kept one by one.
create unique index concurrently credit_ledger_days on credit_ledger (account_id, kind, at)
where scan_id is null and kind in ('debit', 'refund')
