import { Problem } from '../domain/problem.ts'

/**
 * Group commit without a timer: one batch is in flight, what arrives meanwhile rides in the next. At 64
 * callers on one hot account this carries about 35 times what a transaction for each does (see bench/).
 *
 * `run` answers for each item in its order. When a batch fails and one bad item may be to blame, each is run by itself,
 * and only the bad one fails. Any other failure is everybody's at once: a database that is away would be no nearer for
 * being asked 500 times.
 *
 * Nobody waits without end: what would be one too many, and what has waited too long when its turn comes, is refused
 * before it was sent.
 */
export function makeGroupCommit<Item, Result>(deps: {
  run(items: Item[]): Promise<Result[]>
  mayBeOneItemsFault(error: unknown): boolean
  maxBatch: number
  maxWaiting: number
  /** Until the batch is sent; 5 s unless told. */
  maxWaitMs?: number
}) {
  const { maxWaitMs = 5000 } = deps
  type Waiting = { item: Item; sinceMs: number; resolve(result: Result): void; reject(error: unknown): void }
  let waiting: Waiting[] = []
  let busy = false

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= deps.maxWaiting) {
        reject(newOverload(`${deps.maxWaiting} writes are waiting for the database already`))
        return
      }
      waiting.push({ item, sinceMs: performance.now(), resolve, reject })
      if (busy) return
      busy = true
      // Not at once: requests that came in together are still being parsed, and would have to wait for a batch of one.
      setImmediate(drain)
    })

  async function drain() {
    while (waiting.length > 0) {
      refuseLate()
      const batch = waiting.slice(0, deps.maxBatch)
      waiting = waiting.slice(deps.maxBatch)
      if (batch.length > 0) await complete(batch)
    }
    busy = false
  }

  /** They came in order, so those that are late are the first. */
  function refuseLate() {
    const earliestMs = performance.now() - maxWaitMs
    const late = waiting.findIndex(({ sinceMs }) => sinceMs >= earliestMs)
    for (const { reject } of waiting.splice(0, late === -1 ? waiting.length : late)) {
      reject(newOverload(`A write has waited for the database for ${maxWaitMs} ms`))
    }
  }

  async function complete(batch: Waiting[]) {
    try {
      const results = await deps.run(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      if (batch.length > 1 && deps.mayBeOneItemsFault(error)) for (const one of batch) await complete([one])
      else for (const { reject } of batch) reject(error)
    }
  }
}

const retryAfterSeconds = 5

const newOverload = (reason: string) =>
  new Problem({ kind: 'overloaded', retryAfterSeconds }, { cause: new Error(reason) })
