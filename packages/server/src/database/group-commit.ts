import { Problem } from '../domain/problem.ts'
import { isRetryableOneByOne } from './database-error.ts'

/** Calls that may wait for the next batch. */
const maxWaitingCalls = 20_000
const retryAfterSeconds = 5

/**
 * Group commit without a timer: one batch is in flight, and calls that arrive meanwhile form the next one. With 64
 * callers on one account this carries about 35 times as many charges as one transaction per charge (see bench/).
 *
 * `run` returns one result for each item, in order. When a batch fails and a single item may be to blame, the items run
 * one by one, so that only the bad one fails. Any other error fails the whole batch at once: 500 more statements would
 * not bring a lost database back.
 *
 * No call waits without limit. A call is rejected, before it is sent, when too many wait already or when it has waited
 * too long.
 */
export function makeGroupCommit<Item, Result>({
  run,
  maxBatch,
  maxWaiting = maxWaitingCalls,
  maxWaitMs = 5000,
}: {
  run(items: Item[]): Promise<Result[]>
  maxBatch: number
  maxWaiting?: number
  maxWaitMs?: number
}) {
  type Call = { item: Item; arrivedMs: number; resolve(result: Result): void; reject(error: unknown): void }
  let waiting: Call[] = []
  let isRunning = false

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        reject(newOverload(`${maxWaiting} writes are waiting for the database already`))
        return
      }
      waiting.push({ item, arrivedMs: performance.now(), resolve, reject })
      if (isRunning) return
      isRunning = true
      // Requests that arrived together are still being parsed; without this pause they would wait for a batch of one.
      setImmediate(runAll)
    })

  async function runAll() {
    while (waiting.length > 0) {
      rejectOverdueCalls()
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      if (batch.length > 0) await runBatch(batch)
    }
    isRunning = false
  }

  /** Calls wait in the order of arrival, so the overdue calls come first. */
  function rejectOverdueCalls() {
    const earliestMs = performance.now() - maxWaitMs
    const firstInTime = waiting.findIndex(({ arrivedMs }) => arrivedMs >= earliestMs)
    for (const { reject } of waiting.splice(0, firstInTime === -1 ? waiting.length : firstInTime)) {
      reject(newOverload(`A write has waited for the database for ${maxWaitMs} ms`))
    }
  }

  async function runBatch(batch: Call[]) {
    try {
      const results = await run(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      if (batch.length > 1 && isRetryableOneByOne(error)) for (const call of batch) await runBatch([call])
      else for (const { reject } of batch) reject(error)
    }
  }
}

const newOverload = (reason: string) =>
  new Problem({ kind: 'overloaded', retryAfterSeconds }, { cause: new Error(reason) })
