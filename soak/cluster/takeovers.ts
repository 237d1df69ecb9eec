import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'

const withinMs = 30_000
/** A running worker extends its leases more often than this. */
const aliveMs = 6000

/** Measures how long work of a killed node takes until another node completes or claims it. */
export function watchTakeovers(pool: pg.Pool) {
  const watching: Promise<void>[] = []
  let [held, late, longestMs] = [0, 0, 0]

  const listHeld = async () => {
    const { rows } = await pool.query<{ token: string; until: string }>(
      `select lease_token::text as token, held_until::text as until from jobs where lease_token is not null
       union all select lease_token::text, held_until::text from remote_scans where lease_token is not null and num_nonnulls(result, failure) = 0`,
    )
    return new Map(rows.map(({ token, until }) => [token, until]))
  }

  /** A running node completes work or extends its lease; work of a dead node changes when another claims it. */
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
      assert(ms < withinMs, `${left.length} are not claimed or completed after ${Math.round(ms)} ms`)
      await pause(250)
    }
  }

  return {
    /** Call this when a node was killed. */
    start() {
      const watched = watch()
      watched.catch(() => {})
      watching.push(watched)
    },
    /** Undefined when no work was taken over. */
    async end(): Promise<string | undefined> {
      await Promise.all(watching)
      if (watching.length === 0) return undefined
      const seconds = (longestMs / 1000).toFixed(1)
      return `${held} jobs and remote scans were under way at kills, ${late} times some were left to another node, the longest for ${seconds} s`
    },
  }
}
