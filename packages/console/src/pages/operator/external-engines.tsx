import type { Status } from '@assay/contract/admin'
import { Badge } from '../../ui/badge.tsx'
import { toNumber } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Props = Pick<Status, 'external_engines' | 'disagreements'>

/** Engines of assay.toml with their health, and content about which engines disagreed. Empty without such engines. */
export function ExternalEngines({ external_engines: engines, disagreements }: Props) {
  return (
    <>
      {engines.length > 0 && <HealthTable engines={engines} />}
      {disagreements.count > 0 && <Disagreements disagreements={disagreements} />}
    </>
  )
}

const toMilliseconds = (ms: number | null) => (ms === null ? '–' : `${toNumber(ms)} ms`)

function HealthTable({ engines }: { engines: Props['external_engines'] }) {
  return (
    <Table
      title="External engines"
      caption="External engines"
      rows={engines}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Engine', cell: ({ name }) => <span className="font-medium">{name}</span> },
        {
          title: 'State',
          cell: ({ is_open, fault }) =>
            is_open ? (
              <Badge tone="threat">! does not answer</Badge>
            ) : (
              <Badge tone={fault === null ? 'clean' : 'error'}>
                {fault === null ? '✓ answers' : '! last try failed'}
              </Badge>
            ),
        },
        { title: 'Kind', cell: ({ kind }) => kind },
        { title: 'If it fails', cell: ({ is_required }) => (is_required ? 'The scan fails' : 'It is noted') },
        { title: 'Version', cell: ({ version }) => <LongText>{version ?? '–'}</LongText> },
        { title: 'Scans', isNumber: true, cell: ({ scans }) => toNumber(scans) },
        { title: 'Failures', isNumber: true, cell: ({ failures }) => toNumber(failures) },
        { title: 'p50', isNumber: true, cell: ({ p50_ms }) => toMilliseconds(p50_ms) },
        { title: 'p99', isNumber: true, cell: ({ p99_ms }) => toMilliseconds(p99_ms) },
        { title: 'Last fault', cell: ({ fault }) => <LongText>{fault ?? '–'}</LongText> },
      ]}
    />
  )
}

function Disagreements({ disagreements }: Pick<Props, 'disagreements'>) {
  return (
    <Table
      title={`Disagreements between engines (${toNumber(disagreements.count)} since the start of this node)`}
      caption="Disagreements between engines"
      rows={disagreements.recent}
      keyOf={({ sha256, at }) => `${sha256} ${at}`}
      columns={[
        { title: 'When', cell: ({ at }) => <Age at={at} /> },
        { title: 'SHA-256', cell: ({ sha256 }) => <LongText isCode>{sha256}</LongText> },
        { title: 'Verdict', cell: ({ status }) => status },
        { title: 'Found', cell: ({ found }) => <LongText>{found}</LongText> },
        { title: 'Called it clean', cell: ({ clean }) => clean },
      ]}
    />
  )
}
