import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'

const withinMs = 30_000

/** How long work that was under way when a node was killed takes to be done, or another's. */
export function watchTakeovers(pool: pg.Pool) {
  const watching: Promise<void>[] = []
  let [held, late, longestMs] = [0, 0, 0]

  const listHeld = async () => {
    const { rows } = await pool.query<{ token: string }>(
      `select lease_token::text as token from jobs where lease_token is not null
       union all select lease_token::text from errands where lease_token is not null and outcome is null`,
    )
    return new Set(rows.map(({ token }) => token))
  }

  async function watch(): Promise<void> {
    const startedAt = performance.now()
    const before = await listHeld()
    held += before.size
    for (;;) {
      const now = await listHeld()
      const left = [...before].filter((token) => now.has(token))
      const ms = performance.now() - startedAt
      if (left.length === 0) {
        if (before.size > 0) longestMs = Math.max(longestMs, ms)
        if (ms > 5000) late++
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
    async end(): Promise<string> {
      await Promise.all(watching)
      const seconds = (longestMs / 1000).toFixed(1)
      return `${held} jobs and errands were under way at kills, ${late} times some were left to another node, the longest for ${seconds} s`
    },
  }
}
