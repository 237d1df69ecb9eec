import type { Clock } from '../domain/ports/clock.ts'
import { findRow, type Queryable } from './query.ts'

/** The clock of the database, kept by this process between measurements. */
export type DatabaseClock = Clock & {
  /** Asks the database for its time, and corrects this clock. */
  measure(db: Queryable): Promise<void>
  /** How far the clock of this machine is ahead of the database's, in milliseconds; below zero when it is behind. */
  findDifferenceMs(): number
  /** A sentence while the clocks differ by more than 5 s. */
  findFault(): string | undefined
}

const largestDifferenceMs = 5000

/**
 * Makes the clock by which a node dates what other nodes read. Between measurements it counts with the monotonic clock,
 * so that setting the time of this machine changes nothing. Each measurement moves it only as far as the answer proves:
 * the database read its clock at some moment between question and answer. An answer that took long, as on a machine that
 * is overloaded, proves little, and then moves it little.
 */
export function makeDatabaseClock(read = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }) {
  /** Time of the database minus the monotonic clock; undefined before the first measurement. */
  let offsetMs: number | undefined
  const now = () => (offsetMs === undefined ? read.wallMs() : read.monotonicMs() + offsetMs)

  const clock: DatabaseClock = {
    now: () => new Date(now()),

    async measure(db) {
      const askedMs = read.monotonicMs()
      const row = await findRow<{ ms: number }>(db, 'select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
      const answeredMs = read.monotonicMs()
      if (row === undefined) return
      const [least, most] = [row.ms - answeredMs, row.ms - askedMs]
      offsetMs = offsetMs === undefined ? (least + most) / 2 : Math.min(Math.max(offsetMs, least), most)
    },

    findDifferenceMs: () => read.wallMs() - now(),

    findFault() {
      const differenceMs = clock.findDifferenceMs()
      if (Math.abs(differenceMs) <= largestDifferenceMs) return undefined
      const seconds = Math.round(Math.abs(differenceMs) / 1000)
      const side = differenceMs > 0 ? 'ahead of' : 'behind'
      return `The clock of this machine is ${seconds} s ${side} PostgreSQL's, which Assay goes by. Set both by NTP.`
    },
  }
  return clock
}
