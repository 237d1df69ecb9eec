import { EngineBusy, EngineStarved, type JobTurn, type Work } from '../ports/engines.ts'

/** The content took more processor time than one scan may use. */
export class WorkExceeded extends Error {}

const tickMs = 1000
/** Processor time of the engines for one scan. Ordinary content takes milliseconds, large containers seconds. */
const maxWorkMs = 45_000
/** Elapsed time, without waits, after which a scan is given up without a verdict: the machine is too busy for it. */
const maxElapsedMs = 240_000
/** Elapsed time for which a caller waits for free resources, all of them together. Jobs wait for as long as it takes. */
const maxWaitedMs = 30_000

/** Limits of one scan. Tests give smaller ones. */
export type WorkLimits = { workMs: number; elapsedMs: number; waitedMs: number }

type Running = {
  isJob: boolean
  workMs: number
  elapsedMs: number
  waitedMs: number
  /** Resources that the scan waits for at the moment. */
  waits: number
  controller: AbortController
}

/**
 * Limits scans by the processor time that the engines use for them, not by elapsed time, so that the same content gets
 * the same verdict on a busy machine as on a quiet one. A process that works for one scan at a time is measured exactly;
 * scans that use the same process at once share its time.
 */
export function makeWorkClock(deps: {
  readProcessorMs(pid: number): number
  now(): number
  limits?: Partial<WorkLimits>
}) {
  const limits = { workMs: maxWorkMs, elapsedMs: maxElapsedMs, waitedMs: maxWaitedMs, ...deps.limits }
  const scans = new Set<Running>()
  const meters = makeMeters(deps.readProcessorMs)
  let timer: NodeJS.Timeout | undefined
  let lastTickAt = 0

  function tick() {
    if (scans.size === 0) {
      clearInterval(timer)
      timer = undefined
      meters.forgetShared()
      return
    }
    meters.read()
    const now = deps.now()
    // While our own event loop stood still, no engine is to blame for the time.
    const tookMs = Math.min(now - lastTickAt, 2 * tickMs)
    lastTickAt = now
    for (const scan of scans) {
      if (scan.waits > 0) scan.waitedMs += tookMs
      else scan.elapsedMs += tookMs
      const reason = findReasonToEnd(scan)
      if (reason !== undefined) scan.controller.abort(reason)
    }
  }

  function findReasonToEnd({ workMs, elapsedMs, waitedMs, isJob }: Running): Error | undefined {
    if (workMs > limits.workMs) return new WorkExceeded(`The scan took over ${limits.workMs} ms of work`)
    if (elapsedMs > limits.elapsedMs)
      return new EngineStarved(`The engines had too little time for the scan in ${limits.elapsedMs} ms`)
    if (!isJob && waitedMs > limits.waitedMs)
      return new EngineBusy(`The scan waited for over ${limits.waitedMs} ms for the engines`)
    return undefined
  }

  return {
    /** Runs a scan; the signal is aborted with `WorkExceeded` or `EngineBusy` when the scan must end. */
    async run<T>(scan: (work: Work) => Promise<T>, { job, accountId }: Turn = {}): Promise<T> {
      const controller = new AbortController()
      const running: Running = { isJob: job !== undefined, workMs: 0, elapsedMs: 0, waitedMs: 0, waits: 0, controller }
      if (timer === undefined) {
        lastTickAt = deps.now()
        timer = setInterval(tick, tickMs).unref()
      }
      scans.add(running)
      const work: Work = {
        signal: controller.signal,
        onWait() {
          running.waits++
          return () => running.waits--
        },
        onUse: (pid, isShared) => (isShared ? meters.share(pid, running) : meters.own(pid, running)),
      }
      if (job !== undefined) work.job = job
      if (accountId) work.accountId = accountId
      try {
        return await scan(work)
      } finally {
        scans.delete(running)
      }
    },
  }
}

/** The account of a scan and, for a background scan, its turn. */
export type Turn = { accountId?: string | null; job?: JobTurn | undefined }

export type WorkClock = ReturnType<typeof makeWorkClock>

/** Counts the processor time of processes for the scans that use them. */
function makeMeters(readProcessorMs: (pid: number) => number) {
  type Meter = { pid: number; lastMs: number; users: Set<Running> }
  const owned = new Set<Meter>()
  const shared = new Map<number, Meter>()

  const newMeter = (pid: number): Meter => ({ pid, lastMs: readProcessorMs(pid), users: new Set() })

  function read(meter: Meter) {
    const processorMs = readProcessorMs(meter.pid)
    // The sum falls when a process ends, which does not give time back.
    const shareMs = Math.max(0, processorMs - meter.lastMs) / Math.max(1, meter.users.size)
    meter.lastMs = processorMs
    for (const scan of meter.users) scan.workMs += shareMs
  }

  return {
    /** Begins to count all time of the process for the scan, until the returned function is called. */
    own(pid: number, scan: Running) {
      const meter = newMeter(pid)
      meter.users.add(scan)
      owned.add(meter)
      return () => {
        if (owned.delete(meter)) read(meter)
      }
    },
    /** Counts an equal part of the time for every scan that uses the process when the clock ticks. */
    share(pid: number, scan: Running) {
      const meter = shared.get(pid) ?? newMeter(pid)
      shared.set(pid, meter)
      meter.users.add(scan)
      return () => void meter.users.delete(scan)
    },
    read() {
      for (const meter of [...owned, ...shared.values()]) read(meter)
    },
    forgetShared: () => shared.clear(),
  }
}
