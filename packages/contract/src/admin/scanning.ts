import type { Static } from 'typebox'
import { ScanResult } from '../schemas.ts'
import { Type } from '../type.ts'
import {
  count,
  day,
  flag,
  id,
  nullable,
  oneOf,
  page,
  pageQuery,
  scanKind,
  scanStatus,
  sha256,
  text,
  time,
} from './fields.ts'

export const ScanRow = Type.Object({
  id,
  scan_type: scanKind,
  status: scanStatus,
  content_name: nullable(text),
  content_length: count,
  content_type: text,
  signals: Type.Array(text),
  sha256: nullable(text),
  key_name: nullable(text),
  created_at: time,
  completed_at: nullable(time),
  /** The status of the last revision, and its time; null without one. */
  revised_status: nullable(oneOf('clean', 'threat', 'error')),
  revised_at: nullable(time),
})
export type ScanRow = Static<typeof ScanRow>
export const ScanPage = page(ScanRow)

/** Filters of the scan list; the history page keeps the same names in its address. */
export const ScanFilter = Type.Object({
  ...pageQuery,
  status: Type.Optional(scanStatus),
  kind: Type.Optional(scanKind),
  key: Type.Optional(id),
  /** Part of the file name, in any case. */
  name: Type.Optional(Type.String({ maxLength: 255 })),
  from: Type.Optional(day),
  to: Type.Optional(day),
  hash: Type.Optional(sha256),
})
export type ScanFilter = Static<typeof ScanFilter>

/** One scan with its events in chronological order. */
export const ScanDetail = Type.Object({
  scan: ScanResult,
  key_name: nullable(text),
  timeline: Type.Array(Type.Object({ at: time, event: text, detail: nullable(text) })),
  deliveries: Type.Array(id),
})
export type ScanDetail = Static<typeof ScanDetail>

const counts = { clean: count, threat: count, error: count, pending: count }

export const Overview = Type.Object({
  plan: text,
  credit_limit: count,
  credit_remaining: count,
  period_start: time,
  period_end: time,
  today: Type.Object({ scans: count, ...counts }),
  webhooks: Type.Object({ delivered: count, failed: count, waiting: count, paused: count }),
  /** The last 30 days, oldest first. */
  days: Type.Array(Type.Object({ day, ...counts })),
  latest: Type.Array(ScanRow),
  checklist: Type.Object({ has_key: flag, has_scanned: flag, has_webhook: flag }),
})
export type Overview = Static<typeof Overview>

export const Usage = Type.Object({
  days: Type.Array(Type.Object({ day, kind: scanKind, key_name: nullable(text), ...counts })),
  refusals: Type.Array(Type.Object({ day, status: count, count })),
  credit_limit: count,
  credit_remaining: count,
  period_end: time,
  /** When the credits run out at the pace of the last seven days; null if they last until the period ends. */
  runs_out_at: nullable(time),
})
export type Usage = Static<typeof Usage>
