import type { Status } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Meter } from '../../ui/charts.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toAge, toBytes, toNumber, toSeconds } from '../../ui/format.ts'
import { Card, Facts, Figure, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

const tones: Record<Status['status'], Tone> = { ok: 'clean', degraded: 'error', down: 'threat' }
const words: Record<Status['status'], string> = {
  ok: 'All parts work.',
  degraded: 'The service answers, but something needs attention.',
  down: 'The service cannot do its work.',
}

/** Whether the service is well, and if not, why. */
export function StatusPage() {
  const status = useRead('getStatus', {}, { liveMs: 3000 })
  return (
    <Page title="Status" about="Looked at again every few seconds.">
      <Reading of={status}>{(seen) => <Seen seen={seen} />}</Reading>
    </Page>
  )
}

function Seen({ seen }: { seen: Status }) {
  const troubles = seen.parts.filter(({ status }) => status !== 'ok')
  const well = seen.parts.filter(({ status }) => status === 'ok')
  return (
    <>
      <Card>
        <div className="flex flex-wrap items-center gap-3">
          <Badge tone={tones[seen.status]}>{seen.status}</Badge>
          <p className="text-base font-medium">{words[seen.status]}</p>
        </div>
        {troubles.length > 0 && (
          <ul className="mt-3 flex list-disc flex-col gap-1 pl-5">
            {troubles.map(({ detail }) => (
              <li key={detail}>{detail}</li>
            ))}
          </ul>
        )}
        {well.length > 0 && <p className="mt-3 text-soft">Working: {well.map(({ name }) => name).join(', ')}.</p>}
      </Card>
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-4">
        <Figure
          label="Jobs waiting"
          value={toNumber(seen.queue.waiting)}
          note={`${toNumber(seen.queue.running)} run, oldest ${toSeconds(seen.queue.oldest_seconds)}`}
        />
        <Figure
          label="Settled in the last minute"
          value={toNumber(seen.queue.settled_last_minute)}
          note={`${(seen.queue.settled_last_minute / 60).toFixed(1)} a second`}
        />
        <Figure
          label="Webhooks waiting"
          value={toNumber(seen.webhooks.waiting)}
          note={seen.webhooks.late_seconds > 1 ? `late by ${toSeconds(seen.webhooks.late_seconds)}` : 'on time'}
        />
        <Figure
          label="Answers, 99 % within"
          value={seen.latency.p99_ms === null ? '–' : `${toNumber(seen.latency.p99_ms)} ms`}
          note={`half within ${seen.latency.p50_ms === null ? '–' : `${seen.latency.p50_ms} ms`}, ${toNumber(seen.latency.requests)} requests`}
        />
      </div>
      <Engines engines={seen.engines} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="This machine">
          <Facts
            rows={[
              ['Memory of the service', toBytes(seen.memory_bytes)],
              ['Running for', toSeconds(seen.uptime_seconds)],
              [
                'Disk',
                <div key="disk" className="flex flex-col gap-2">
                  <span>
                    {toBytes(seen.disk.data_bytes_free)} of {toBytes(seen.disk.data_bytes_total)} free
                  </span>
                  <Meter label="Free disk space" value={seen.disk.data_bytes_free} max={seen.disk.data_bytes_total} />
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
      {seen.nodes.length > 1 && (
        <Table
          caption="Nodes"
          rows={seen.nodes}
          keyOf={({ id }) => id}
          columns={[
            { title: 'Node', cell: ({ id }) => <code className="font-mono text-xs">{id}</code> },
            { title: 'Roles', cell: ({ roles }) => roles },
            { title: 'Version', cell: ({ version }) => version },
            { title: 'Seen', cell: ({ seen_at }) => toAge(seen_at) },
          ]}
        />
      )}
    </>
  )
}

function Engines({ engines }: Pick<Status, 'engines'>) {
  if (engines.length === 0) return <Empty title="No engines run here">Nothing can be scanned on this node.</Empty>
  return (
    <Table
      caption="Engines"
      rows={engines}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Engine', cell: ({ name }) => <span className="font-medium">{name}</span> },
        {
          title: 'State',
          cell: ({ is_up }) => <Badge tone={is_up ? 'clean' : 'threat'}>{is_up ? 'runs' : 'down'}</Badge>,
        },
        { title: 'Version', cell: ({ version }) => version ?? '–' },
        {
          title: 'Signatures',
          isNumber: true,
          cell: ({ signatures }) => (signatures === null ? '–' : toNumber(signatures)),
        },
        {
          title: 'Newest',
          isExtra: true,
          cell: ({ signatures_at }) => (signatures_at === null ? '–' : toAge(signatures_at)),
        },
      ]}
    />
  )
}
