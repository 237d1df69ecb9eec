import { type FormEvent, useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toNumber, toReplayed } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, ErrorMessage, Loaded, Notice } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Host = Answer<'listFailingHosts'>[number]

/** Failing webhook receivers, grouped by host because receivers on one host usually fail for the same reason. */
export function DeliveriesPage() {
  const hosts = useRead('listFailingHosts', {}, { liveMs: 5000 })
  const [message, setMessage] = useState('')
  return (
    <Page
      title="Deliveries"
      about="Webhook receivers that fail or are paused, by host. A receiver that has failed for five days is paused automatically."
      actions={<ExportLinks list="listFailingHosts" />}
    >
      {message !== '' && (
        <Notice>
          <span role="status">{message}</span>
        </Notice>
      )}
      <Loaded query={hosts}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No failing receivers">Hosts appear here when a webhook cannot be delivered.</Empty>
          ) : (
            <Hosts rows={rows} onReplayed={setMessage} />
          )
        }
      </Loaded>
    </Page>
  )
}

function Hosts({ rows, onReplayed }: { rows: Host[]; onReplayed: (message: string) => void }) {
  const pause = useChange('pauseHost')
  const [toReplay, setToReplay] = useState<string>()
  return (
    <>
      <ErrorMessage error={pause.error} />
      <Table
        caption="Failing receivers"
        rows={rows}
        keyOf={({ host }) => host}
        columns={[
          {
            title: 'Host',
            cell: ({ host }) => (
              <LongText>
                <span className="font-medium">{host}</span>
              </LongText>
            ),
          },
          {
            title: 'State',
            cell: ({ paused }) => <Badge tone={paused ? 'error' : 'threat'}>{paused ? 'paused' : 'failing'}</Badge>,
          },
          {
            title: 'Failing since',
            cell: ({ failing_since }) => <Age at={failing_since} />,
          },
          { title: 'Receivers', isNumber: true, cell: ({ endpoints }) => toNumber(endpoints) },
          { title: 'Waiting', isNumber: true, cell: ({ waiting }) => toNumber(waiting) },
          { title: 'Failed', isNumber: true, cell: ({ dead }) => toNumber(dead) },
          {
            title: 'Actions',
            isActions: true,
            cell: ({ host, paused }) => (
              <span className="inline-flex gap-2">
                <Button
                  isSmall
                  aria-label={`${paused ? 'Resume' : 'Pause'} ${host}`}
                  onClick={() => pause.mutate({ body: { host, paused: !paused } })}
                >
                  {paused ? 'Resume' : 'Pause'}
                </Button>
                <Button isSmall aria-label={`Replay ${host}`} onClick={() => setToReplay(host)}>
                  Replay
                </Button>
              </span>
            ),
          },
        ]}
      />
      {toReplay !== undefined && (
        <ReplayHost host={toReplay} onReplayed={onReplayed} onClose={() => setToReplay(undefined)} />
      )}
    </>
  )
}

const hourMs = 3_600_000
const spans: [hours: string, label: string][] = [
  ['1', 'The last hour'],
  ['24', 'The last 24 hours'],
  ['168', 'The last 7 days'],
  ['720', 'The last 30 days'],
]

type ReplayProps = { host: string; onReplayed: (message: string) => void; onClose: () => void }

function ReplayHost({ host, onReplayed, onClose }: ReplayProps) {
  const [hours, setHours] = useState('168')
  const replay = useChange('replayHost', {
    onDone: ({ replayed }) => {
      onReplayed(`${host}: ${toReplayed(replayed)}`)
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    replay.mutate({ body: { host, since: new Date(Date.now() - Number(hours) * hourMs).toISOString() } })
  }
  const form = { submit, error: replay.error, isBusy: replay.isPending }
  return (
    <FormDialog title={`Replay ${host}`} action="Replay" form={form} onClose={onClose}>
      <p className="text-soft">Sends failed deliveries again. Waiting deliveries are retried automatically.</p>
      <SelectField label="Created in" value={hours} options={spans} onText={setHours} />
    </FormDialog>
  )
}
