import type { ScanResult } from '@assay/client'
import type { Outcome } from '../scanning/outcome.ts'
import { type Target, toShown } from '../targets/target.ts'
import type { Paint } from './colours.ts'
import { toInert, toInertJson } from './inert.ts'

/** A line as clamscan writes it, or undefined where there is nothing to say. */
export function findLine(target: Target, outcome: Outcome, paint: Paint): string | undefined {
  const path = toInert(toShown(target))
  if (outcome.kind === 'scanned') return `${path}: ${toVerdict(outcome.result, paint)}`
  if (outcome.kind === 'failed') return `${path}: ${toInert(trimEnd(outcome.reason))} ${paint('yellow', 'ERROR')}`
  if (outcome.kind === 'submitted') return `${path}: ${toInert(outcome.id)} SUBMITTED`
  if (outcome.kind === 'empty') return `${path}: Empty file`
  if (outcome.kind === 'skipped') return `${path}: ${outcome.reason}, not scanned`
  return undefined
}

/** One line of JSON: what the service said, with the path; or why it was not asked. */
export function findJson(target: Target, outcome: Outcome): string | undefined {
  const raw = 'place' in target && typeof target.place.raw !== 'string' ? target.place.raw : undefined
  const path = { path: toShown(target), ...(raw && { path_base64: raw.toString('base64') }) }
  if (outcome.kind === 'scanned') return toInertJson({ ...path, ...outcome.result })
  if (outcome.kind === 'submitted') return toInertJson({ ...path, status: 'submitted', id: outcome.id })
  if (outcome.kind === 'empty') return toInertJson({ ...path, status: 'empty' })
  if (outcome.kind === 'skipped') return toInertJson({ ...path, status: 'skipped', reason: outcome.reason })
  if (outcome.kind === 'unfinished') return undefined
  const { reason, code } = outcome
  return toInertJson({ ...path, status: 'error', reason, ...(code !== '' && { code }) })
}

function toVerdict({ status, signals }: ScanResult, paint: Paint): string {
  if (status === 'clean') return paint('green', 'OK')
  const names = (signals ?? []).map((signal) => toInert(toName(signal))).join(', ')
  if (status === 'threat') return paint('red', `${names} FOUND`)
  if (status === 'pending') return 'PENDING'
  return `${names} ${paint('yellow', 'ERROR')}`
}

/** `Virus:Eicar` is Eicar: what kind it is, is known from what was asked. */
const toName = (signal: string) => signal.replace(/^(Virus|Classification|Error):/, '')

const trimEnd = (sentence: string) => sentence.replace(/\.$/, '')
