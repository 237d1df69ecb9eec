import type { DownloadCredential } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { LongText } from '../../ui/long-text.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Day } from '../../ui/time.tsx'
import { AddBucket, AddHost } from './add-credential.tsx'
import { listParams, removeParams, routesOf } from './routes.ts'

type Adding = 'host' | 'bucket'

/** The download credentials of an account: without `accountId` of the user's own, otherwise of one that operators see. */
export function DownloadsCard({ accountId }: { accountId?: string }) {
  const query = useRead(routesOf(accountId).list, listParams(accountId))
  const [adding, setAdding] = useState<Adding>()
  const [removal, setRemoval] = useState<DownloadCredential>()
  const close = () => setAdding(undefined)
  return (
    <section className="flex flex-col gap-3" aria-label="Download credentials">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 className="font-semibold">Download credentials</h2>
        <span className="flex flex-wrap gap-2">
          <Button onClick={() => setAdding('host')}>Add headers for a host</Button>
          <Button onClick={() => setAdding('bucket')}>Add an S3 key</Button>
        </span>
      </div>
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No download credentials">
              Scans of URLs download what everyone can. For a host or bucket that requires a credential, add one.
            </Empty>
          ) : (
            <Credentials rows={rows} onRemove={setRemoval} />
          )
        }
      </Loaded>
      {adding === 'host' && <AddHost accountId={accountId} onClose={close} />}
      {adding === 'bucket' && <AddBucket accountId={accountId} onClose={close} />}
      {removal !== undefined && (
        <RemoveCredential credential={removal} accountId={accountId} onClose={() => setRemoval(undefined)} />
      )}
    </section>
  )
}

function Credentials({
  rows,
  onRemove,
}: {
  rows: DownloadCredential[]
  onRemove: (credential: DownloadCredential) => void
}) {
  return (
    <Table
      caption="Download credentials"
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'For',
          cell: ({ target, region }) => (
            <span className="flex flex-col items-start">
              <LongText>{target}</LongText>
              {region !== null && <span className="text-xs text-soft">{region}</span>}
            </span>
          ),
        },
        { title: 'Values', cell: (credential) => <Values {...credential} /> },
        {
          title: 'Added',
          isExtra: true,
          cell: ({ created_at, created_by }) => (
            <span className="flex flex-col items-start">
              <Day at={created_at} />
              <span className="max-w-52 truncate text-xs text-soft">by {created_by}</span>
            </span>
          ),
        },
        {
          title: 'Actions',
          isActions: true,
          cell: (credential) => (
            <Button isSmall onClick={() => onRemove(credential)} aria-label={`Remove ${credential.target}`}>
              Remove
            </Button>
          ),
        },
      ]}
    />
  )
}

/** Names of the values, and fingerprints, by which people can tell which value is stored. */
function Values({ values }: Pick<DownloadCredential, 'values'>) {
  if (values === null) return <Badge tone="threat">cannot be used</Badge>
  return (
    <ul>
      {values.map(({ name, fingerprint }) => (
        <li key={name} className="[overflow-wrap:anywhere]">
          {name} <code className="font-mono text-xs text-soft">{fingerprint}</code>
        </li>
      ))}
    </ul>
  )
}

function RemoveCredential(props: {
  credential: DownloadCredential
  accountId: string | undefined
  onClose: () => void
}) {
  const { credential, accountId, onClose } = props
  const remove = useChange(routesOf(accountId).remove, { onDone: onClose })
  return (
    <Confirm
      title="Remove the credential"
      action="Remove"
      mutation={remove}
      onConfirm={() => remove.mutate(removeParams(accountId, credential.id))}
      onClose={onClose}
    >
      Downloads of {credential.target} that begin from now on do not use it.
    </Confirm>
  )
}
