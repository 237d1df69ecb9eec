import type { ScanResult } from '@assay/contract'
import type { ReactNode } from 'react'
import { Badge, Verdict } from '../../ui/badge.tsx'
import { ScoreBar } from '../../ui/charts.tsx'
import { Code, CopyButton } from '../../ui/copy.tsx'
import { toBytes, toDateTime, toSeconds } from '../../ui/format.ts'
import { Facts } from '../../ui/page.tsx'
import { Notice } from '../../ui/states.tsx'

const meanings: Record<ScanResult['status'], string> = {
  clean: 'No threats found.',
  threat: 'Do not accept this content.',
  error: 'The content could not be scanned completely. Do not treat it as clean.',
  pending: 'The scan is in progress.',
}

const tints: Record<ScanResult['status'], string> = {
  clean: 'bg-clean-soft',
  threat: 'bg-threat-soft',
  error: 'bg-error-soft',
  pending: 'bg-pending-soft',
}

const scores = [
  ['classification_clean', 'Clean', 'clean'],
  ['classification_sexy', 'Sexy', 'error'],
  ['classification_pornography', 'Pornography', 'threat'],
] as const

/** A scan result with all its details. */
export function ResultCard({ result, name, children }: { result: ScanResult; name?: string; children?: ReactNode }) {
  const metadata = result.metadata ?? {}
  const signals = result.signals ?? []
  return (
    <article aria-label="Result" className="flex flex-col gap-5">
      <header className={`flex items-start justify-between gap-3 rounded-lg px-4 py-3 ${tints[result.status]}`}>
        <div className="min-w-0">
          <h3 className="text-lg font-semibold break-all">{result.content_name ?? name ?? 'Unnamed'}</h3>
          <p>{meanings[result.status]}</p>
        </div>
        <span className="flex shrink-0 gap-2 rounded-full bg-panel p-1">
          {metadata.test === 'true' && <Badge tone="error">test</Badge>}
          <Verdict status={result.status} />
        </span>
      </header>
      {signals.length > 0 && <Signals signals={signals} />}
      {metadata.reason !== undefined && <p className="rounded-lg bg-sunk px-4 py-3 break-words">{metadata.reason}</p>}
      {metadata.revised_status !== undefined && (
        <Notice tone="warning">
          Revised to {metadata.revised_status} on {toDateTime(metadata.revised_at ?? '')}. {metadata.revised_reason}.
        </Notice>
      )}
      {metadata.degraded !== undefined && (
        <Notice tone="warning">Scanned by a degraded service: {metadata.degraded}</Notice>
      )}
      <Scores metadata={metadata} />
      {children}
      <Facts rows={toFacts(result, metadata)} />
      <details>
        <summary className="cursor-pointer font-medium text-soft hover:text-ink">Raw JSON</summary>
        <div className="mt-2">
          <Code label="Response" text={JSON.stringify(result, null, 2)} />
        </div>
      </details>
    </article>
  )
}

function Signals({ signals }: { signals: string[] }) {
  return (
    <ul aria-label="Signals" className="flex flex-wrap gap-2">
      {signals.map((signal) => (
        <li
          key={signal}
          className="rounded-lg border border-line bg-sunk px-2.5 py-1 font-mono text-xs font-medium break-all"
        >
          {signal}
        </li>
      ))}
    </ul>
  )
}

function Scores({ metadata }: { metadata: Record<string, string> }) {
  const present = scores.filter(([key]) => metadata[key] !== undefined)
  if (present.length === 0) return null
  return (
    <section aria-label="Scores" className="flex flex-col gap-1.5">
      {present.map(([key, label, tone]) => (
        <ScoreBar key={key} label={label} score={Number(metadata[key])} tone={tone} />
      ))}
    </section>
  )
}

const labels: Record<string, string> = { engine_versions: 'Engines', signatures_at: 'Signatures from' }
/** Metadata that the card shows elsewhere. */
const shownElsewhere = new Set([
  'test',
  'reason',
  'degraded',
  'revised_status',
  'revised_at',
  'revised_reason',
  'location',
  'frame_index',
  'frames_scanned',
  'frames_total',
  'hash_sha1',
  'hash_sha256',
  ...scores.map(([key]) => key),
])

function toFacts(result: ScanResult, metadata: Record<string, string>): [string, ReactNode][] {
  const { location, frame_index: frame, frames_scanned: frames, frames_total: total } = metadata
  return [
    ...pick('Found in', location, (path) => <Location path={path} />),
    ...pick(
      'Frame',
      frame,
      (index) => `frame ${index} has the highest score; ${frames ?? 'several'} of ${total ?? 'all'} frames scored`,
    ),
    ['Size', `${toBytes(result.content_length)}, ${result.content_type}`],
    ...pick('SHA-256', metadata.hash_sha256, (hash) => <Hash name="SHA-256" hash={hash} />),
    ...pick('SHA-1', metadata.hash_sha1, (hash) => <Hash name="SHA-1" hash={hash} />),
    ...Object.entries(metadata)
      .filter(([key]) => !shownElsewhere.has(key))
      .map(([key, value]): [string, ReactNode] => [
        labels[key] ?? key,
        key.endsWith('_at') && !Number.isNaN(Date.parse(value)) ? toDateTime(value) : value,
      ]),
    ['Accepted', toDateTime(result.created_at)],
    ...pick('Duration', result.completed_at, (at) => toDuration(Date.parse(at) - Date.parse(result.created_at))),
    ...pick('ID', result.id, (id) => <code className="font-mono text-xs break-all">{id}</code>),
  ]
}

const toDuration = (ms: number) => (ms < 1000 ? `${ms} ms` : toSeconds(ms / 1000))

const pick = (label: string, value: string | null | undefined, show: (value: string) => ReactNode) =>
  value === undefined || value === null ? [] : [[label, show(value)] as [string, ReactNode]]

function Hash({ name, hash }: { name: string; hash: string }) {
  return (
    <span className="flex items-start justify-between gap-3">
      <code className="min-w-0 pt-0.5 font-mono text-xs break-all">{hash}</code>
      <CopyButton text={hash} subject={name} />
    </span>
  )
}

/** The path from the outermost container to the file inside it. */
function Location({ path }: { path: string }) {
  return <code className="font-mono text-xs break-all">{path.split('!').join(' › ')}</code>
}
