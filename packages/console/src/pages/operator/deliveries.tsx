import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty, Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { toAge, toNumber } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

const weekMs = 7 * 86_400_000

/** Receivers that fail, by host: one host is one thing to put right. */
export function DeliveriesPage() {
  const hosts = useRead('listFailingHosts', {}, { liveMs: 5000 })
  const pause = useChange('pauseHost')
  const [said, setSaid] = useState('')
  const replay = useChange('replayHost', {
    onDone: ({ replayed }) => setSaid(`${toNumber(replayed)} deliveries are due again.`),
  })
  return (
    <Page
      title="Deliveries"
      about="Webhook receivers that fail or are paused. A receiver that has only failed for five days is paused by itself."
    >
      <Failure error={pause.error ?? replay.error} />
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
            <Table
              caption="Failing receivers"
              rows={rows}
              keyOf={({ host }) => host}
              columns={[
                { title: 'Host', cell: ({ host }) => <span className="font-medium break-all">{host}</span> },
                {
                  title: 'State',
                  cell: ({ paused }) => (
                    <Badge tone={paused ? 'error' : 'threat'}>{paused ? 'paused' : 'failing'}</Badge>
                  ),
                },
                { title: 'Since', cell: ({ failing_since }) => (failing_since === null ? '–' : toAge(failing_since)) },
                { title: 'Receivers', isNumber: true, cell: ({ endpoints }) => toNumber(endpoints) },
                { title: 'Waiting', isNumber: true, cell: ({ waiting }) => toNumber(waiting) },
                { title: 'Given up', isNumber: true, cell: ({ dead }) => toNumber(dead) },
                {
                  title: 'Actions',
                  cell: ({ host, paused }) => (
                    <span className="flex flex-wrap gap-1">
                      <Button
                        look="quiet"
                        aria-label={`${paused ? 'Resume' : 'Pause'} ${host}`}
                        onClick={() => pause.mutate({ body: { host, paused: !paused } })}
                      >
                        {paused ? 'Resume' : 'Pause'}
                      </Button>
                      <Button
                        look="quiet"
                        aria-label={`Replay what failed at ${host} this week`}
                        onClick={() =>
                          replay.mutate({ body: { host, since: new Date(Date.now() - weekMs).toISOString() } })
                        }
                      >
                        Replay the week
                      </Button>
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Reading>
    </Page>
  )
}
