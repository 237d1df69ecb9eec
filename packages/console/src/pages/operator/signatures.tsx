import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { toAge, toBytes, toDay } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { AddSignatures } from './add-signatures.tsx'

type Signatures = Answer<'getSignatures'>

const toName = (path: string) => path.split('/').at(-1) ?? path
const updateWords = {
  updated: 'There were new signatures, and they are in use.',
  'up-to-date': 'The mirror was asked. What it has is in use.',
  unavailable: 'There was no update.',
}

/** What malware is recognised by, and whether it still is. */
export function SignaturesPage() {
  const signatures = useRead('getSignatures', {}, { liveMs: 10_000 })
  const update = useChange('updateSignatures')
  const test = useChange('runSelfTest')
  const actions = (
    <>
      <Button isBusy={test.isPending} onClick={() => test.mutate({})}>
        Test the engines
      </Button>
      <Button isBusy={update.isPending} onClick={() => update.mutate({})}>
        Look for updates
      </Button>
    </>
  )
  return (
    <Page
      title="Signatures and models"
      about="New files are tried before they are used, and a running scan is not disturbed."
      actions={actions}
    >
      <Failure error={update.error ?? test.error} />
      {update.data !== undefined && (
        <Notice>
          <p role="status">
            {updateWords[update.data.state]}
            {update.data.state === 'unavailable' && ` ${update.data.detail}`}
          </p>
        </Notice>
      )}
      {test.data !== undefined && <SelfTest result={test.data} />}
      <Reading of={signatures}>
        {(seen) => (
          <>
            <div className="grid gap-4 lg:grid-cols-2">
              <InUse seen={seen} />
              <AddSignatures />
            </div>
            {seen.refused.length > 0 && (
              <Card title="Left out, because they cannot be read">
                <Facts rows={seen.refused.map(({ path, reason }) => [toName(path), reason])} />
              </Card>
            )}
            <Files files={seen.files} />
          </>
        )}
      </Reading>
    </Page>
  )
}

function SelfTest({ result }: { result: Answer<'runSelfTest'> }) {
  return (
    <Card
      title="Self-test"
      actions={<Badge tone={result.ok ? 'clean' : 'threat'}>{result.ok ? '✓ passed' : '✕ failed'}</Badge>}
    >
      <div role="status">
        <Facts rows={result.checks.map(({ name, ok, detail }) => [`${ok ? '✓' : '✕'} ${name}`, detail])} />
      </div>
    </Card>
  )
}

function InUse({ seen: { files, released_at, models } }: { seen: Signatures }) {
  const own = files.filter(({ is_own }) => is_own).length
  return (
    <Card title="In use">
      <Facts
        rows={[
          ['Files', own === 0 ? `${files.length} shipped with Assay` : `${files.length}, of them ${own} added here`],
          ['Newest of', released_at === null ? '–' : `${toDay(released_at)} (${toAge(released_at)})`],
          ['Model for images', models.length === 0 ? 'none' : models.map(({ name }) => name).join('; ')],
        ]}
      />
    </Card>
  )
}

function Files({ files }: Pick<Signatures, 'files'>) {
  const [doomed, setDoomed] = useState<string>()
  const remove = useChange('removeSignatures', { onDone: () => setDoomed(undefined) })
  return (
    <>
      <Table
        title="Files"
        caption="Signature files"
        rows={files}
        keyOf={({ path }) => path}
        columns={[
          { title: 'File', cell: ({ path }) => <Long isCode>{toName(path)}</Long> },
          {
            title: 'From',
            cell: ({ is_own }) => <Badge tone={is_own ? 'brand' : 'plain'}>{is_own ? 'added' : 'shipped'}</Badge>,
          },
          {
            title: 'Size',
            isNumber: true,
            cell: ({ bytes }) => <span className="whitespace-nowrap">{toBytes(bytes)}</span>,
          },
          { title: 'Changed', cell: ({ changed_at }) => toAge(changed_at) },
          {
            title: 'Actions',
            isActions: true,
            cell: ({ path, is_own }) =>
              is_own && (
                <Button isSmall aria-label={`Remove ${toName(path)}`} onClick={() => setDoomed(toName(path))}>
                  Remove
                </Button>
              ),
          },
        ]}
      />
      {doomed !== undefined && (
        <Confirm
          title={`Remove ${doomed}`}
          action="Remove"
          of={remove}
          onConfirm={() => remove.mutate({ params: { name: doomed } })}
          onClose={() => setDoomed(undefined)}
        >
          What only this file recognises is no longer found. The file is deleted from the data directory.
        </Confirm>
      )}
    </>
  )
}
