import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty, Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { toAge, toNumber } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { ReplayHost } from './replay-host.tsx'

type Host = Answer<'listFailingHosts'>[number]

/** Receivers that fail, by host: one host is one thing to put right. */
export function DeliveriesPage() {
  const hosts = useRead('listFailingHosts', {}, { liveMs: 5000 })
  const [said, setSaid] = useState('')
  return (
    <Page
      title="Deliveries"
      about="Webhook receivers that fail or are paused, by host. One that has only failed for five days is paused by itself."
    >
      {said !== '' && (
        <Notice>
          <span role="status">{said}</span>
        </Notice>
      )}
      <Reading of={hosts}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No receiver fails">Hosts appear here when a webhook cannot be delivered.</Empty>
          ) : (
            <Hosts rows={rows} onSaid={setSaid} />
          )
        }
      </Reading>
    </Page>
  )
}

function Hosts({ rows, onSaid }: { rows: Host[]; onSaid: (said: string) => void }) {
  const pause = useChange('pauseHost')
  const [replayed, setReplayed] = useState<string>()
  return (
    <>
      <Failure error={pause.error} />
      <Table
        caption="Failing receivers"
        rows={rows}
        keyOf={({ host }) => host}
        columns={[
          {
            title: 'Host',
            cell: ({ host }) => (
              <Long>
                <span className="font-medium">{host}</span>
              </Long>
            ),
          },
          {
            title: 'State',
            cell: ({ paused }) => <Badge tone={paused ? 'error' : 'threat'}>{paused ? 'paused' : 'failing'}</Badge>,
          },
          {
            title: 'Failing since',
            cell: ({ failing_since }) => (failing_since === null ? '–' : toAge(failing_since)),
          },
          { title: 'Receivers', isNumber: true, cell: ({ endpoints }) => toNumber(endpoints) },
          { title: 'Waiting', isNumber: true, cell: ({ waiting }) => toNumber(waiting) },
          { title: 'Given up', isNumber: true, cell: ({ dead }) => toNumber(dead) },
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
                <Button isSmall aria-label={`Replay ${host}`} onClick={() => setReplayed(host)}>
                  Replay
                </Button>
              </span>
            ),
          },
        ]}
      />
      {replayed !== undefined && <ReplayHost host={replayed} onSaid={onSaid} onClose={() => setReplayed(undefined)} />}
    </>
  )
}
