import type { Clock } from '../domain/ports/clock.ts'
import type { RejectedRequestStore } from '../domain/ports/scan-history.ts'
import type { Logger } from '../runtime/logger.ts'

const everyMs = 5000
/** Accounts times days times statuses: more than a busy minute has. Beyond it counting stops until the next write. */
const maxKinds = 10_000

/** Counts refused requests of accounts, for their usage page. What is not written yet is lost in a crash; it is no money. */
export function openRejectedRequests(deps: { store: RejectedRequestStore; clock: Clock; log: Logger }) {
  let counts = new Map<string, { accountId: string; day: string; status: number; count: number }>()

  const write = async () => {
    if (counts.size === 0) return
    const batch = counts
    counts = new Map()
    await deps.store.add([...batch.values()])
  }
  const timer = setInterval(() => {
    write().catch((error) => deps.log.warn({ err: error }, 'refusals could not be counted'))
  }, everyMs).unref()

  return {
    count(accountId: string, status: number) {
      const day = deps.clock.now().toISOString().slice(0, 10)
      const key = `${accountId} ${day} ${status}`
      const known = counts.get(key)
      if (known !== undefined) known.count++
      else if (counts.size < maxKinds) counts.set(key, { accountId, day, status, count: 1 })
    },
    async close() {
      clearInterval(timer)
      await write().catch(() => {})
    },
  }
}
