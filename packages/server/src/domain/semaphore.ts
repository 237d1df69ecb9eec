import { EngineBusy, type JobTurn, type Work } from './ports/engines.ts'

type Waiter = {
  weight: number
  work: Work | undefined
  job: JobTurn | undefined
  resolve(): void
  reject(error: unknown): void
}

type SemaphoreOptions = {
  count: number
  /** Work of callers that may wait. Jobs may wait without limit: their worker bounds how many there are. */
  maxWaiting?: number
  /** How long the work of a caller may wait. */
  maxWaitMs?: number
  /** Permits that jobs leave free for callers. A job that would need them runs while no other job does. */
  reserved?: number
  /** How long after the last caller permits stay reserved. */
  reservedForMs?: number
  /** Permits that one account may hold, so that others find a free one. Work that needs more runs alone. */
  perAccount?: number
  /** Permits that one account may hold while another one has work, of any weight. */
  perAccountBesideOthers?: number
}

/** How long after its last work an account counts as one that has work. */
const besideOthersMs = 2000

/**
 * Permits for so many jobs, one more for callers of the account whose jobs have all of them, and one more for other
 * accounts.
 */
export const shareWithCallers = (jobs: number) => ({ count: jobs + 2, reserved: 2, perAccount: jobs + 1 })

/** After so many callers in a row, a job that waits has its turn. */
const callersInRow = 8

/**
 * Lets at most `count` pieces of work run at once, or as many as their weights together allow. Callers who wait for a
 * result come before background jobs, in the order of their arrival; more than `maxWaiting` of them, and those that wait
 * longer than `maxWaitMs`, fail with `EngineBusy`. Jobs wait for as long as it takes: their accounts take turns, and the
 * oldest job of an account comes first, also when it was released and has come again.
 */
export function makeSemaphore(options: SemaphoreOptions) {
  const { maxWaiting = Infinity, maxWaitMs = 30_000 } = options
  const permits = makePermits(options)
  const callers = new Set<Waiter>()
  const jobs = makeJobQueue()
  let servedCallers = 0

  const countWaiting = () => callers.size + jobs.count()

  /** Takes permits that `release` must give back. The signals end the wait only. */
  function acquire(work?: Work, weight = 1): Promise<void> | undefined {
    const job = work?.job
    work?.signal.throwIfAborted()
    if (job === undefined) permits.noteCaller()
    permits.noteAccount(work)
    if (countWaiting() === 0 && permits.tryTake(weight, work)) return undefined
    job?.stopping.throwIfAborted()
    if (job === undefined && callers.size >= maxWaiting)
      throw new EngineBusy(`Too many scans: ${maxWaiting} are waiting already`)
    return new Promise((resolve, reject) => {
      const waiter = newWaiter({ weight, work, maxWaitMs, remove, serveWaiting, resolve, reject })
      if (job === undefined) callers.add(waiter)
      else jobs.add(waiter, job)
      serveWaiting()
    })
  }

  function remove(waiter: Waiter) {
    if (waiter.job === undefined) callers.delete(waiter)
    else jobs.remove(waiter, waiter.job)
  }

  function release(weight = 1, work?: Work) {
    permits.giveBack(weight, work)
    serveWaiting()
  }

  function findNext(): Waiter | undefined {
    const caller = findFirst(callers, permits.mayAccountTake)
    const first = jobs.findFirst(permits.mayAccountTake)
    // A job that must leave permits free does not hold up callers.
    const job = first !== undefined && permits.mayJobTake(first.weight) ? first : undefined
    if (caller === undefined || job === undefined) return caller ?? job
    return servedCallers < callersInRow ? caller : job
  }

  /** Hands permits to the waiters directly, so that a newcomer cannot overtake the queue. */
  function serveWaiting() {
    for (;;) {
      const next = findNext()
      if (next === undefined || !permits.tryTake(next.weight, next.work)) return
      servedCallers = next.job === undefined && jobs.count() > 0 ? servedCallers + 1 : 0
      if (next.job !== undefined) jobs.endTurn(next.job)
      next.resolve()
    }
  }

  return {
    acquire,
    release,
    /** Tells of work that needs no permit. */
    noteAccount: permits.noteAccount,
    /** Takes a free permit away, for a resource that does not exist any more. */
    withdraw: permits.withdraw,
    async use<T>(run: () => Promise<T>, work?: Work, weight = 1): Promise<T> {
      await acquire(work, weight)
      try {
        return await run()
      } finally {
        release(weight, work)
      }
    },
    rejectWaiting(toError: () => Error) {
      for (const waiter of [...callers, ...jobs.list()]) waiter.reject(toError())
    },
    countWaiting,
  }
}

function findFirst(waiters: Iterable<Waiter>, mayTake: (waiter: Waiter) => boolean): Waiter | undefined {
  for (const waiter of waiters) if (mayTake(waiter)) return waiter
  return undefined
}

const toAccount = (work: Work | undefined) => work?.job?.accountId ?? work?.accountId ?? ''

export type Semaphore = ReturnType<typeof makeSemaphore>

/** Permits, of which jobs leave some free. */
function makePermits(options: SemaphoreOptions) {
  const { count, reserved = 0, reservedForMs = Infinity, perAccount = Infinity } = options
  const { perAccountBesideOthers = perAccount } = options
  const recentAccounts = makeRecentAccounts()
  let free = count
  const heldByAccount = new Map<string, number>()
  let heldByJobs = 0
  let lastCallerAt = reservedForMs === Infinity ? Infinity : -Infinity

  function mayJobTake(weight: number): boolean {
    const isReserved = reserved > 0 && performance.now() - lastCallerAt < reservedForMs
    return !isReserved || heldByJobs === 0 || heldByJobs + weight <= count - reserved
  }

  function mayAccountTake({ weight, work }: Pick<Waiter, 'weight' | 'work'>): boolean {
    const account = toAccount(work)
    const held = heldByAccount.get(account) ?? 0
    return held === 0 || held + weight <= (recentAccounts.hasOther(account) ? perAccountBesideOthers : perAccount)
  }

  /** Work without an account, such as a probe of the service itself, is not counted. */
  function countForAccount(work: Work | undefined, change: number) {
    const account = toAccount(work)
    if (perAccount === Infinity || account === '') return
    const held = (heldByAccount.get(account) ?? 0) + change
    if (held > 0) heldByAccount.set(account, held)
    else heldByAccount.delete(account)
  }

  return {
    mayJobTake,
    mayAccountTake,
    noteAccount(work: Work | undefined) {
      if (perAccountBesideOthers !== perAccount) recentAccounts.note(toAccount(work))
    },
    noteCaller() {
      if (reservedForMs !== Infinity) lastCallerAt = performance.now()
    },
    tryTake(weight: number, work: Work | undefined): boolean {
      const isJob = work?.job !== undefined
      if (free < weight || (isJob && !mayJobTake(weight)) || !mayAccountTake({ weight, work })) return false
      free -= weight
      if (isJob) heldByJobs += weight
      countForAccount(work, weight)
      return true
    },
    giveBack(weight: number, work: Work | undefined) {
      free += weight
      if (work?.job !== undefined) heldByJobs -= weight
      countForAccount(work, -weight)
    },
    withdraw() {
      free--
    },
  }
}

/** Tells whether any other account had work recently. The last two accounts suffice for that. */
function makeRecentAccounts() {
  let last = { account: '', at: -Infinity }
  let lastOther = last
  return {
    note(account: string) {
      if (account === '') return
      if (account !== last.account) lastOther = last
      last = { account, at: performance.now() }
    },
    hasOther(account: string): boolean {
      const other = last.account === account ? lastOther : last
      return performance.now() - other.at < besideOthersMs
    },
  }
}

/** Work in a wait queue, which leaves it when it is served, when a signal ends the wait, and as a caller after its time. */
function newWaiter(deps: {
  weight: number
  work: Work | undefined
  maxWaitMs: number
  remove(waiter: Waiter): void
  serveWaiting(): void
  resolve(): void
  reject(error: unknown): void
}): Waiter {
  const { weight, work, maxWaitMs } = deps
  const job = work?.job
  const signals = [work?.signal, job?.stopping].filter((signal) => signal !== undefined)
  const endWait = work?.onWait?.()
  const abort = () => waiter.reject(signals.find(({ aborted }) => aborted)?.reason)
  const rejectAsBusy = () => waiter.reject(new EngineBusy(`The engine was busy for ${maxWaitMs} ms`))
  const isBounded = job === undefined && maxWaitMs !== Infinity
  const timer = isBounded ? setTimeout(rejectAsBusy, maxWaitMs) : undefined
  for (const signal of signals) signal.addEventListener('abort', abort, { once: true })

  const leave = () => {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', abort)
    deps.remove(waiter)
    endWait?.()
  }
  const waiter: Waiter = {
    weight,
    work,
    job,
    resolve() {
      leave()
      deps.resolve()
    },
    reject(error) {
      leave()
      deps.reject(error)
      deps.serveWaiting()
    },
  }
  return waiter
}

/** Jobs that wait, by account. The account that is served goes behind the others. */
function makeJobQueue() {
  const waitersByAccount = new Map<string, Waiter[]>()
  let count = 0

  return {
    add(waiter: Waiter, { accountId, order }: JobTurn) {
      const waiters = waitersByAccount.get(accountId) ?? []
      waitersByAccount.set(accountId, waiters)
      const later = waiters.findIndex((other) => other.job !== undefined && other.job.order > order)
      waiters.splice(later === -1 ? waiters.length : later, 0, waiter)
      count++
    },
    remove(waiter: Waiter, { accountId }: JobTurn) {
      const waiters = waitersByAccount.get(accountId) ?? []
      const at = waiters.indexOf(waiter)
      if (at === -1) return
      waiters.splice(at, 1)
      if (waiters.length === 0) waitersByAccount.delete(accountId)
      count--
    },
    endTurn({ accountId }: JobTurn) {
      const waiters = waitersByAccount.get(accountId)
      if (waiters === undefined) return
      waitersByAccount.delete(accountId)
      waitersByAccount.set(accountId, waiters)
    },
    findFirst(mayTake: (waiter: Waiter) => boolean): Waiter | undefined {
      for (const [first] of waitersByAccount.values()) if (first !== undefined && mayTake(first)) return first
      return undefined
    },
    list: () => [...waitersByAccount.values()].flat(),
    count: () => count,
  }
}
