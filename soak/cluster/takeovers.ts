import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'

const withinMs = 30_000
/** A living worker extends its leases more often than that. */
const aliveMs = 6000

/** How long work that was under way when a node was killed takes to be done, or another's. */
export function watchTakeovers(pool: pg.Pool) {
  const watching: Promise<void>[] = []
  let [held, late, longestMs] = [0, 0, 0]

  const listHeld = async () => {
    const { rows } = await pool.query<{ token: string; until: string }>(
      `select lease_token::text as token, held_until::text as until from jobs where lease_token is not null
       union all select lease_token::text, held_until::text from remote_scans where lease_token is not null and outcome is null`,
    )
    return new Map(rows.map(({ token, until }) => [token, until]))
  }

  /** What a living node has is done, or its lease is extended; what a dead one had is as it was until another takes it. */
  async function watch(): Promise<void> {
    const startedAt = performance.now()
    const before = await listHeld()
    held += before.size
    for (;;) {
      const now = await listHeld()
      const left = [...before].filter(([token, until]) => now.get(token) === until)
      const ms = performance.now() - startedAt
      if (left.length === 0) {
        if (before.size > 0) longestMs = Math.max(longestMs, ms)
        if (ms > aliveMs) late++
        return
      }
      assert(ms < withinMs, `${left.length} are in nobody's hands after ${Math.round(ms)} ms`)
      await pause(250)
    }
  }

  return {
    /** A node was killed just now. */
    start() {
      const one = watch()
      one.catch(() => {})
      watching.push(one)
    },
    /** Undefined when none was. */
    async end(): Promise<string | undefined> {
      await Promise.all(watching)
      if (watching.length === 0) return undefined
      const seconds = (longestMs / 1000).toFixed(1)
      return `${held} jobs and remote scans were under way at kills, ${late} times some were left to another node, the longest for ${seconds} s`
    },
  }
}
