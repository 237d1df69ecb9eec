import type { RejectedRequestStore } from '../domain/ports/scan-history.ts'
import type { Logger } from '../runtime/logger.ts'

const everyMs = 5000
/** Combinations of account and status counted between two writes; further ones are not counted. */
const maxKinds = 10_000

/** Counts rejected requests for the usage page of each account. A crash loses at most 5 seconds of counts. */
export function openRejectedRequests(deps: {
  store: RejectedRequestStore
  isOutage(error: unknown): boolean
  log: Logger
}) {
  let counts = new Map<string, { accountId: string; status: number; count: number }>()

  const write = async () => {
    if (counts.size === 0) return
    const batch = counts
    counts = new Map()
    await deps.store.add([...batch.values()])
  }
  const timer = setInterval(() => {
    write().catch((error) => {
      if (!deps.isOutage(error)) deps.log.warn({ err: error }, 'cannot record the counts of rejected requests')
    })
  }, everyMs).unref()

  return {
    count(accountId: string, status: number) {
      const key = `${accountId} ${status}`
      const entry = counts.get(key)
      if (entry !== undefined) entry.count++
      else if (counts.size < maxKinds) counts.set(key, { accountId, status, count: 1 })
    },
    async close() {
      clearInterval(timer)
      await write().catch(() => {})
    },
  }
}
