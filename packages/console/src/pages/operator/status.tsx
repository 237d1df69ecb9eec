import type { Status } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Meter } from '../../ui/charts.tsx'
import { toBytes, toNumber, toSeconds } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Card, Facts, Figure, Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'
import { Activity } from './activity.tsx'
import { ExternalEngines } from './external-engines.tsx'
import { Listeners } from './listeners.tsx'
import { StatusBanner } from './status-banner.tsx'

export function StatusPage() {
  const { data, error } = useRead('getStatus', {}, { liveMs: 3000 })
  // Hide stale data: an earlier healthy state would be misleading here.
  const query = { data: error === null ? data : undefined, error }
  return (
    <Page title="Status" about="Refreshes every 3 seconds.">
      <Loaded query={query}>{(status) => <StatusView status={status} />}</Loaded>
      <Activity />
    </Page>
  )
}

function StatusView({ status }: { status: Status }) {
  return (
    <>
      <StatusBanner status={status} />
      <Figures {...status} />
      <Engines engines={status.engines} />
      <ExternalEngines {...status} />
      <Listeners {...status} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="This node">
          <Facts
            rows={[
              ['Uptime', toSeconds(status.uptime_seconds)],
              ['Memory in use', toBytes(status.memory_bytes)],
              [
                'Disk',
                <div key="disk" className="flex flex-col gap-2">
                  <span>
                    {toBytes(status.disk.data_bytes_free)} free of {toBytes(status.disk.data_bytes_total)}
                  </span>
                  <Meter
                    label="Bytes free on disk"
                    value={status.disk.data_bytes_free}
                    max={status.disk.data_bytes_total}
                  />
                </div>,
              ],
            ]}
          />
        </Card>
        <Card title="Database">
          <Facts
            rows={[
              ['PostgreSQL', status.database.version],
              ['Size', toBytes(status.database.bytes)],
              ['Connections', toNumber(status.database.connections)],
            ]}
          />
        </Card>
      </div>
      {status.nodes.length > 1 && <Nodes nodes={status.nodes} />}
    </>
  )
}

function Figures({ queue, webhooks, latency }: Status) {
  const isIdle = queue.waiting + queue.running === 0
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 lg:grid-cols-4">
      <Figure
        label="Jobs waiting"
        value={toNumber(queue.waiting)}
        note={isIdle ? 'None running' : `${toNumber(queue.running)} running, oldest ${toSeconds(queue.oldest_seconds)}`}
      />
      <Figure
        label="Completed in the last minute"
        value={toNumber(queue.settled_last_minute)}
        note={`${(queue.settled_last_minute / 60).toFixed(1)} per second`}
      />
      <Figure
        label="Webhooks waiting"
        value={toNumber(webhooks.waiting)}
        note={webhooks.late_seconds > 1 ? `${toSeconds(webhooks.late_seconds)} late` : 'None late'}
      />
      <Figure
        label="Response time, p99"
        value={latency.p99_ms === null ? '–' : `${toNumber(latency.p99_ms)} ms`}
        note={
          latency.p50_ms === null
            ? 'No requests yet'
            : `p50 ${latency.p50_ms} ms, ${toNumber(latency.requests)} requests`
        }
      />
    </div>
  )
}

const kindNames = { malware: 'Malware', image: 'Images' }

function Engines({ engines }: Pick<Status, 'engines'>) {
  if (engines.length === 0)
    return (
      <Empty title="No engines on this node">
        This node does not have the worker role. Worker nodes scan its content.
      </Empty>
    )
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
          cell: ({ is_up }) => <Badge tone={is_up ? 'clean' : 'threat'}>{is_up ? '✓ running' : '! down'}</Badge>,
        },
        { title: 'Scans', cell: ({ kind }) => kindNames[kind] },
        { title: 'Version', cell: ({ version }) => <LongText>{version ?? '–'}</LongText> },
        {
          title: 'Signatures',
          isNumber: true,
          cell: ({ signatures }) => (signatures === null ? '–' : toNumber(signatures)),
        },
        {
          title: 'Newest signatures',
          cell: ({ signatures_at }) => <Age at={signatures_at} />,
        },
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
        { title: 'Node', cell: ({ id }) => <LongText isCode>{id}</LongText> },
        { title: 'Roles', cell: ({ roles }) => roles },
        { title: 'Version', cell: ({ version }) => version },
        { title: 'Last seen', cell: ({ seen_at }) => <Age at={seen_at} /> },
      ]}
    />
  )
}
