import type { Status } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Meter } from '../../ui/charts.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toAge, toBytes, toNumber, toSeconds } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Card, Facts, Figure, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { StatusBanner } from './status-banner.tsx'

/** Whether the service is well, and if not, why. */
export function StatusPage() {
  const { data, error } = useRead('getStatus', {}, { liveMs: 3000 })
  // That all was well a moment ago is no answer here.
  const status = { data: error === null ? data : undefined, error }
  return (
    <Page title="Status" about="Looked at again every few seconds.">
      <Reading of={status}>{(seen) => <Seen seen={seen} />}</Reading>
    </Page>
  )
}

function Seen({ seen }: { seen: Status }) {
  return (
    <>
      <StatusBanner seen={seen} />
      <Figures seen={seen} />
      <Engines engines={seen.engines} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="This machine">
          <Facts
            rows={[
              ['Running for', toSeconds(seen.uptime_seconds)],
              ['Memory in use', toBytes(seen.memory_bytes)],
              [
                'Disk',
                <div key="disk" className="flex flex-col gap-2">
                  <span>
                    {toBytes(seen.disk.data_bytes_free)} free of {toBytes(seen.disk.data_bytes_total)}
                  </span>
                  <Meter
                    label="Bytes free on disk"
                    value={seen.disk.data_bytes_free}
                    max={seen.disk.data_bytes_total}
                  />
                </div>,
              ],
            ]}
          />
        </Card>
        <Card title="Database">
          <Facts
            rows={[
              ['PostgreSQL', seen.database.version],
              ['Size', toBytes(seen.database.bytes)],
              ['Connections', toNumber(seen.database.connections)],
            ]}
          />
        </Card>
      </div>
      {seen.nodes.length > 1 && <Nodes nodes={seen.nodes} />}
    </>
  )
}

function Figures({ seen: { queue, webhooks, latency } }: { seen: Status }) {
  const isIdle = queue.waiting + queue.running === 0
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 lg:grid-cols-4">
      <Figure
        label="Jobs waiting"
        value={toNumber(queue.waiting)}
        note={isIdle ? 'none running' : `${toNumber(queue.running)} running, oldest ${toSeconds(queue.oldest_seconds)}`}
      />
      <Figure
        label="Done in the last minute"
        value={toNumber(queue.settled_last_minute)}
        note={`${(queue.settled_last_minute / 60).toFixed(1)} a second`}
      />
      <Figure
        label="Webhooks waiting"
        value={toNumber(webhooks.waiting)}
        note={webhooks.late_seconds > 1 ? `late by ${toSeconds(webhooks.late_seconds)}` : 'none late'}
      />
      <Figure
        label="Time to answer, p99"
        value={latency.p99_ms === null ? '–' : `${toNumber(latency.p99_ms)} ms`}
        note={
          latency.p50_ms === null
            ? 'no requests yet'
            : `p50 ${latency.p50_ms} ms, ${toNumber(latency.requests)} requests`
        }
      />
    </div>
  )
}

function Engines({ engines }: Pick<Status, 'engines'>) {
  if (engines.length === 0) return <Empty title="No engines run here">Nothing can be scanned on this node.</Empty>
  return (
    <Table
      title="Engines"
      caption="Engines"
      rows={engines}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Engine', cell: ({ name }) => <span className="font-medium">{name}</span> },
        {
          title: 'State',
          cell: ({ is_up }) => <Badge tone={is_up ? 'clean' : 'threat'}>{is_up ? '✓ runs' : '! down'}</Badge>,
        },
        { title: 'Version', cell: ({ version }) => <Long>{version ?? '–'}</Long> },
        {
          title: 'Signatures',
          isNumber: true,
          cell: ({ signatures }) => (signatures === null ? '–' : toNumber(signatures)),
        },
        { title: 'Newest', cell: ({ signatures_at }) => (signatures_at === null ? '–' : toAge(signatures_at)) },
      ]}
    />
  )
}

function Nodes({ nodes }: Pick<Status, 'nodes'>) {
  return (
    <Table
      title="Nodes"
      caption="Nodes"
      rows={nodes}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Node', cell: ({ id }) => <Long isCode>{id}</Long> },
        { title: 'Roles', cell: ({ roles }) => roles },
        { title: 'Version', cell: ({ version }) => version },
        { title: 'Seen', cell: ({ seen_at }) => toAge(seen_at) },
      ]}
    />
  )
}
