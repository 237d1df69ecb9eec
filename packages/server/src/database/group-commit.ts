import { Problem } from '../domain/problem.ts'
import { isRetryableOneByOne } from './database-error.ts'

/** Calls that may wait for the next batch. */
const maxWaitingCalls = 20_000
const retryAfterSeconds = 5

/**
 * Rule by which a batch that follows another one waits for more calls: until as many wait as `countWanted` returns, or
 * for `ms`. Under load this makes batches larger; a caller that is alone never waits.
 */
type Gathering = { ms: number; countWanted(recent: RecentCalls): number }

/** The size of the last batch, and the calls that were under way together at the end of the last batches. */
type RecentCalls = { lastSize: number; together: number }

/** Rounded down, so that neither of two callers waits for the other one. */
const gatherMost: Gathering = { ms: 3, countWanted: ({ together }) => Math.floor((together * 3) / 4) }

/**
 * For work that no caller waits for: batches grow while there is load. A statement of 64 items costs less than half as
 * much for each of them as one of 8.
 */
export const gatherMany: Gathering = {
  ms: 20,
  countWanted: ({ lastSize }) => (lastSize === 1 ? 1 : Math.min(64, 2 * lastSize)),
}

/** Calls with a `toWaitMs` are sent when so many wait: each then bears a sixteenth of the statement. */
const enoughCalls = 16

/** How long after a batch further calls are expected, at least. */
const recentMs = 5

/**
 * Group commit: one batch is in flight, and calls that arrive meanwhile form the next one. With 64 callers on one
 * account this carries about 35 times as many charges as one transaction per charge (see bench/).
 *
 * A statement costs about as much as ten of its items. So when a batch has just ended, the next one waits a moment for
 * more calls (`gathering`), usually for most of those that were under way together lately. Under load, batches would
 * otherwise remain as small as they happen to be. Calls that may wait for longer (`toWaitMs`) do so for a few others,
 * until a call arrives that may not.
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
  gathering = gatherMost,
  toWaitMs = () => 0,
  readMs = () => performance.now(),
}: {
  run(items: Item[]): Promise<Result[]>
  maxBatch: number
  maxWaiting?: number
  maxWaitMs?: number
  gathering?: Gathering
  /** How long a call may wait for others, whether or not a batch has just ended. */
  toWaitMs?(item: Item): number
  /** Reads a clock that nobody sets. */
  readMs?(): number
}) {
  type Call = {
    item: Item
    arrivedMs: number
    waitsUntilMs: number
    resolve(result: Result): void
    reject(error: unknown): void
  }
  let waiting: Call[] = []
  let isRunning = false
  let recent: RecentCalls & { endedMs: number } = { lastSize: 0, together: 0, endedMs: -Infinity }
  const gatherer = makeGatherer()

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        reject(newOverload(`${maxWaiting} writes are waiting for the database already`))
        return
      }
      const arrivedMs = readMs()
      const waitsUntilMs = arrivedMs + toWaitMs(item)
      waiting.push({ item, arrivedMs, waitsUntilMs, resolve, reject })
      gatherer.note(waiting.length, waitsUntilMs)
      if (isRunning) return
      isRunning = true
      // Requests that arrived together are still being parsed; without this pause they would wait for a batch of one.
      setImmediate(runAll)
    })

  async function runAll() {
    while (waiting.length > 0) {
      await gatherRecent()
      await gatherPatient()
      rejectOverdueCalls()
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      if (batch.length === 0) continue
      await runBatch(batch)
    }
    isRunning = false
  }

  /** Waits until most of the recent callers have called again, unless the last batch ended long ago. */
  function gatherRecent(): Promise<void> | undefined {
    // Calls beyond a full batch go into the one after it: waiting for them would only delay those that are there.
    const wanted = Math.min(maxBatch, gathering.countWanted(recent))
    const isRecent = readMs() - recent.endedMs <= Math.max(recentMs, gathering.ms)
    return waiting.length >= wanted || !isRecent ? undefined : gatherer.gather(wanted, gathering.ms)
  }

  /** Waits for a few calls as long as every call may that is there. */
  function gatherPatient(): Promise<void> | undefined {
    const wanted = Math.min(maxBatch, enoughCalls)
    if (waiting.length >= wanted) return undefined
    const untilMs = Math.min(...waiting.map(({ waitsUntilMs }) => waitsUntilMs))
    const ms = untilMs - readMs()
    return ms <= 0 ? undefined : gatherer.gather(wanted, ms, untilMs)
  }

  /** Calls wait in the order of arrival, so the overdue calls come first. */
  function rejectOverdueCalls() {
    const earliestMs = readMs() - maxWaitMs
    const firstInTime = waiting.findIndex(({ arrivedMs }) => arrivedMs >= earliestMs)
    for (const { reject } of waiting.splice(0, firstInTime === -1 ? waiting.length : firstInTime)) {
      reject(newOverload(`A write has waited for the database for ${maxWaitMs} ms`))
    }
  }

  /** Must run before the calls of a batch are answered: the next calls of the same callers were not under way yet. */
  function noteCalls(batch: Call[]) {
    const calls = batch.length + waiting.length
    const together = Math.max(calls, (recent.together + calls) / 2)
    recent = { lastSize: batch.length, together, endedMs: readMs() }
  }

  async function runBatch(batch: Call[]) {
    try {
      const results = await run(batch.map(({ item }) => item)).finally(() => noteCalls(batch))
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

function makeGatherer() {
  let current: { wanted: number; untilMs: number; end(): void } | undefined
  return {
    /** Waits until `wanted` calls wait, or for `ms`. A call that may not wait until `untilMs` ends the wait. */
    gather: (wanted: number, ms: number, untilMs = -Infinity): Promise<void> =>
      new Promise((resolve) => {
        const end = () => {
          clearTimeout(timer)
          current = undefined
          resolve()
        }
        const timer = setTimeout(end, ms)
        current = { wanted, untilMs, end }
      }),
    /** Call it for each new call, with the number of calls that wait now. */
    note(count: number, waitsUntilMs: number) {
      if (current !== undefined && (count >= current.wanted || waitsUntilMs < current.untilMs)) current.end()
    },
  }
}
