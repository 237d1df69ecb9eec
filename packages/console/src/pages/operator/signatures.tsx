import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { toBytes, toDay, toNumber } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { ErrorMessage, Loaded, Notice } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'
import { AddSignatures } from './add-signatures.tsx'
import { Sources } from './sources.tsx'

type Signatures = Answer<'getSignatures'>

const toName = (path: string) => path.split('/').at(-1) ?? path
const updateMessages = {
  updated: 'New signatures were installed.',
  'up-to-date': 'The signatures are up to date.',
  unavailable: 'Signatures are not updated here.',
  failed: 'The update failed.',
}

export function SignaturesPage() {
  const signatures = useRead('getSignatures', {}, { liveMs: 10_000 })
  const update = useChange('updateSignatures')
  const test = useChange('runSelfTest')
  const actions = (
    <>
      <Button isBusy={test.isPending} onClick={() => test.mutate({})}>
        Run self-test
      </Button>
      <Button isBusy={update.isPending} onClick={() => update.mutate({})}>
        Update now
      </Button>
    </>
  )
  return (
    <Page
      title="Signatures and models"
      about="The service tests new files before it uses them, and does not interrupt running scans."
      actions={actions}
    >
      <ErrorMessage error={update.error ?? test.error} />
      {update.data !== undefined && (
        <Notice tone={update.data.state === 'failed' ? 'warning' : 'information'}>
          <p role="status">
            {updateMessages[update.data.state]}
            {['unavailable', 'failed'].includes(update.data.state) && ` ${update.data.detail}`}
          </p>
        </Notice>
      )}
      {test.data !== undefined && <SelfTest result={test.data} />}
      <Loaded query={signatures}>
        {(data) => (
          <>
            {data.fault !== null && <Notice tone="warning">{data.fault}</Notice>}
            <div className="grid gap-4 lg:grid-cols-2">
              <InUse {...data} />
              <AddSignatures />
            </div>
            {data.refused.length > 0 && (
              <Card title="Rejected files">
                <Facts rows={data.refused.map(({ path, reason }) => [toName(path), reason])} />
              </Card>
            )}
            <Sources />
            <Files files={data.files} />
          </>
        )}
      </Loaded>
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

function InUse({ files, official_at, fault, models }: Signatures) {
  const own = files.filter(({ is_own }) => is_own).length
  const others = files.filter(({ is_own, source }) => is_own || source !== null).length
  return (
    <Card title="In use">
      <Facts
        rows={[
          [
            'Files',
            describeFiles({ 'included with Assay': files.length - others, uploaded: own, 'of sources': others - own }),
          ],
          ["ClamAV's databases", <Databases key="official" at={official_at} isFaulty={fault !== null} />],
          ['Image models', models.length === 0 ? 'None' : models.map(({ name }) => name).join('; ')],
        ]}
      />
    </Card>
  )
}

/** Missing and old databases, and those whose last update failed, are marked. */
function Databases({ at, isFaulty }: { at: string | null; isFaulty: boolean }) {
  const age =
    at === null ? (
      'missing'
    ) : (
      <>
        {toDay(at)} (<Age at={at} />)
      </>
    )
  return isFaulty ? <Badge tone="error">! {age}</Badge> : age
}

function Files({ files }: Pick<Signatures, 'files'>) {
  const [toRemove, setToRemove] = useState<string>()
  const remove = useChange('removeSignatures', { onDone: () => setToRemove(undefined) })
  return (
    <>
      <Table
        title="Files"
        caption="Signature files"
        rows={files}
        keyOf={({ path }) => path}
        columns={[
          { title: 'File', cell: ({ path }) => <LongText isCode>{toName(path)}</LongText> },
          {
            title: 'Source',
            cell: ({ is_own, source }) => (
              <Badge tone={is_own ? 'brand' : 'plain'}>{is_own ? 'uploaded' : (source ?? 'included')}</Badge>
            ),
          },
          {
            title: 'Size',
            isNumber: true,
            cell: ({ bytes }) => <span className="whitespace-nowrap">{toBytes(bytes)}</span>,
          },
          { title: 'Changed', cell: ({ changed_at }) => <Age at={changed_at} /> },
          {
            title: 'Actions',
            isActions: true,
            cell: ({ path, is_own }) =>
              is_own && (
                <Button isSmall aria-label={`Remove ${toName(path)}`} onClick={() => setToRemove(toName(path))}>
                  Remove
                </Button>
              ),
          },
        ]}
      />
      {toRemove !== undefined && (
        <Confirm
          title={`Remove ${toRemove}`}
          action="Remove"
          mutation={remove}
          onConfirm={() => remove.mutate({ params: { name: toRemove } })}
          onClose={() => setToRemove(undefined)}
        >
          The engines no longer detect threats that only this file describes. An uploaded file is removed from all
          nodes; one of ClamAV's databases, or a file that was put into the data directory by hand, from this node only.
        </Confirm>
      )}
    </>
  )
}

const describeFiles = (counts: Record<string, number>) =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${toNumber(count)} ${name}`)
    .join(', ')
