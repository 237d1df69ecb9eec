import type { ScanResult } from '@assay/client'
import type { Outcome } from '../scanning/outcome.ts'
import { type Target, toDisplay } from '../targets/target.ts'
import { sanitize, sanitizeJson } from './sanitize.ts'

type Colour = 'red' | 'green' | 'yellow'
export type Paint = (colour: Colour, text: string) => string

const codes: Record<Colour, number> = { red: 31, green: 32, yellow: 33 }

/** Colours text on a terminal that supports colours, unless NO_COLOR is set (https://no-color.org). */
export function makePaint(isTerminal: boolean, env: NodeJS.ProcessEnv): Paint {
  const isOn = isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return (colour, text) => (isOn ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text)
}

/** A line in the format of clamscan, or undefined for an unfinished scan. */
export function findLine(target: Target, outcome: Outcome, paint: Paint): string | undefined {
  const path = sanitize(toDisplay(target))
  if (outcome.kind === 'scanned') return `${path}: ${toVerdict(outcome.result, paint)}`
  if (outcome.kind === 'failed') return `${path}: ${sanitize(trimPeriod(outcome.reason))} ${paint('yellow', 'ERROR')}`
  if (outcome.kind === 'submitted') return `${path}: ${sanitize(outcome.id)} SUBMITTED`
  if (outcome.kind === 'empty') return `${path}: Empty file`
  if (outcome.kind === 'skipped') return `${path}: ${outcome.reason}, not scanned`
  return undefined
}

/** One line of JSON: the path with the result of the service, or with the reason why there is none. */
export function findJson(target: Target, outcome: Outcome): string | undefined {
  const raw = 'path' in target && typeof target.path.raw !== 'string' ? target.path.raw : undefined
  const path = { path: toDisplay(target), ...(raw && { path_base64: raw.toString('base64') }) }
  if (outcome.kind === 'scanned') return sanitizeJson({ ...path, ...outcome.result })
  if (outcome.kind === 'submitted') return sanitizeJson({ ...path, status: 'submitted', id: outcome.id })
  if (outcome.kind === 'empty') return sanitizeJson({ ...path, status: 'empty' })
  if (outcome.kind === 'skipped') return sanitizeJson({ ...path, status: 'skipped', reason: outcome.reason })
  if (outcome.kind === 'unfinished') return undefined
  const { reason, code } = outcome
  return sanitizeJson({ ...path, status: 'error', reason, ...(code !== '' && { code }) })
}

export function toVerdict({ status, signals }: ScanResult, paint: Paint): string {
  if (status === 'clean') return paint('green', 'OK')
  const names = (signals ?? []).map((signal) => sanitize(removePrefix(signal))).join(', ')
  if (status === 'threat') return paint('red', `${names} FOUND`)
  if (status === 'pending') return 'PENDING'
  return `${names} ${paint('yellow', 'ERROR')}`
}

/** Shortens `Virus:Eicar` to `Eicar`, as clamscan prints it. */
const removePrefix = (signal: string) => signal.replace(/^(Virus|Classification|Error):/, '')

const trimPeriod = (sentence: string) => sentence.replace(/\.$/, '')
