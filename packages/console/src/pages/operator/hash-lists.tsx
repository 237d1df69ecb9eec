import type { HashListRow } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { RevisionTable } from '../../ui/revision-table.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

export function HashListsPage() {
  const lists = useRead('listHashLists', {}, { liveMs: 10_000 })
  return (
    <Page
      title="Hash lists"
      about="Lists of SHA-256 that are known as bad or good, and the earlier results that they revise."
      actions={<ExportLinks list="listHashLists" />}
    >
      <Loaded query={lists}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No hash lists">
              Import one with <code className="font-mono text-xs">npm run assay -- hashes import</code>.
            </Empty>
          ) : (
            <Lists rows={rows} />
          )
        }
      </Loaded>
      <Revisions />
    </Page>
  )
}

function Lists({ rows }: { rows: HashListRow[] }) {
  const [toRemove, setToRemove] = useState<HashListRow>()
  const remove = useChange('removeHashList', { onDone: () => setToRemove(undefined) })
  return (
    <>
      <Table
        caption="Hash lists"
        rows={rows}
        keyOf={({ origin, name }) => `${origin} ${name}`}
        columns={[
          { title: 'List', cell: ({ name }) => <LongText>{name}</LongText> },
          {
            title: 'Verdict',
            cell: ({ verdict }) => <Badge tone={verdict === 'good' ? 'clean' : 'threat'}>{verdict}</Badge>,
          },
          { title: 'Hashes', isNumber: true, cell: ({ hashes }) => hashes.toLocaleString('en') },
          { title: 'Imported', cell: ({ imported_at }) => <Age at={imported_at} /> },
          {
            title: 'From',
            isExtra: true,
            cell: ({ origin, imported_by }) => (
              <LongText>{origin === 'import' ? imported_by : 'Signature file'}</LongText>
            ),
          },
          {
            title: 'Actions',
            isActions: true,
            cell: (list) =>
              list.origin === 'import' && (
                <Button isSmall aria-label={`Remove ${list.name}`} onClick={() => setToRemove(list)}>
                  Remove
                </Button>
              ),
          },
        ]}
      />
      {toRemove !== undefined && (
        <Confirm
          title="Remove the hash list"
          action="Remove"
          mutation={remove}
          onConfirm={() => remove.mutate({ params: { name: toRemove.name } })}
          onClose={() => setToRemove(undefined)}
        >
          Scans no longer use {toRemove.name}, and earlier results that it decided are revised.
        </Confirm>
      )}
    </>
  )
}

function Revisions() {
  const [{ cursor }] = useSearchParams()
  const query = cursor === undefined ? {} : { cursor }
  const revisions = useRead('listRevisions', { query }, cursor === undefined ? { liveMs: 10_000 } : {})
  return (
    <section aria-labelledby="revisions" className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 id="revisions" className="text-lg font-semibold">
          Revisions
        </h2>
        <div className="flex flex-wrap gap-2">
          <ExportLinks list="listRevisions" />
        </div>
      </div>
      <Loaded query={revisions}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No revisions">Results of hashes that become known, or are cleared, appear here.</Empty>
          ) : (
            <>
              <RevisionTable rows={items} hasAccounts />
              <Pager next={next} />
            </>
          )
        }
      </Loaded>
    </section>
  )
}
