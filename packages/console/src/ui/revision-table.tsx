import type { RevisionRow } from '@assay/contract/admin'
import { Verdict } from './badge.tsx'
import { toDateTime } from './format.ts'
import { LongText } from './long-text.tsx'
import { RowButton, Table } from './table.tsx'

type Props = {
  rows: RevisionRow[]
  /** Shows the account of each result, for operators. */
  hasAccounts?: boolean
  /** Opens the result of a row. */
  onOpen?: (row: RevisionRow) => void
}

/** A table of revisions: what was known before, what is known now, and why. */
export function RevisionTable({ rows, hasAccounts = false, onOpen }: Props) {
  return (
    <Table
      caption="Revisions"
      rows={rows}
      keyOf={({ id }) => id}
      {...(onOpen === undefined ? {} : { onOpen })}
      columns={[
        { title: 'Time', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
        ...(hasAccounts
          ? [{ title: 'Account', cell: ({ account_name }: RevisionRow) => <LongText>{account_name}</LongText> }]
          : []),
        {
          title: 'Name',
          cell: ({ content_name }) =>
            onOpen === undefined ? (
              <LongText>{content_name ?? 'Unnamed'}</LongText>
            ) : (
              <RowButton>{content_name ?? 'Unnamed'}</RowButton>
            ),
        },
        {
          title: 'Revision',
          cell: ({ previous_status, status }) => (
            <span className="flex flex-wrap items-center gap-1.5">
              <Verdict status={previous_status} />
              <span className="text-soft">to</span>
              <Verdict status={status} />
            </span>
          ),
        },
        { title: 'Reason', cell: ({ reason }) => <LongText>{reason}</LongText> },
        { title: 'SHA-256', isExtra: true, cell: ({ sha256 }) => <LongText isCode>{sha256 ?? ''}</LongText> },
      ]}
    />
  )
}
