import { v7 } from 'uuid'
import { toScanIdAt } from '../../src/database/scan-partitions.ts'
import type { TestJobs } from './test-jobs.ts'

export const dayMs = 86_400_000
export const ago = (days: number) => new Date(Date.now() - days * dayMs)
export const newIdAt = (time: Date) => v7({ msecs: time.getTime() })

/** Creates the partition of a past day, as a node would have done on that day. */
export async function makeDayIn({ pool }: TestJobs, time: Date): Promise<string> {
  const from = new Date(Math.floor(time.getTime() / dayMs) * dayMs)
  const name = `scans_${from.toISOString().slice(0, 10).replaceAll('-', '')}`
  const bounds = [from, new Date(from.getTime() + dayMs)].map((end) => `('${toScanIdAt(end)}')`)
  await pool.query(`create table ${name} partition of scans for values from ${bounds[0]} to ${bounds[1]}`)
  return name
}
