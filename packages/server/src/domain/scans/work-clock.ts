import { EngineBusy } from '../ports/engines.ts'

/** The content took more processor time than one scan may use. */
export class WorkExceeded extends Error {}

const tickMs = 1000
/** Processor time of the engines for one scan. Ordinary content takes milliseconds, large containers seconds. */
const maxWorkMs = 45_000
/** Elapsed time after which a scan is given up without a verdict: the machine is too busy for it. */
const maxElapsedMs = 240_000

/** Limits of one scan. Tests give smaller ones. */
export type WorkLimits = { workMs: number; elapsedMs: number }

type Running = { workMs: number; startedAt: number; controller: AbortController }

/**
 * Limits scans by the processor time of the engines, not by elapsed time, so that the same content gets the same verdict
 * on a busy machine as on a quiet one. Scans that run at once share the time that the engines use.
 */
export function makeWorkClock(deps: { readProcessorMs(): number; now(): number; limits?: Partial<WorkLimits> }) {
  const { workMs, elapsedMs } = { workMs: maxWorkMs, elapsedMs: maxElapsedMs, ...deps.limits }
  const scans = new Set<Running>()
  let timer: NodeJS.Timeout | undefined
  let lastProcessorMs = 0

  function tick() {
    if (scans.size === 0) {
      clearInterval(timer)
      timer = undefined
      return
    }
    const processorMs = deps.readProcessorMs()
    // The sum falls when a process ends, which does not give time back.
    const shareMs = Math.max(0, processorMs - lastProcessorMs) / scans.size
    lastProcessorMs = processorMs
    for (const scan of scans) {
      scan.workMs += shareMs
      if (scan.workMs > workMs) scan.controller.abort(new WorkExceeded(`The scan took over ${workMs} ms of work`))
      else if (deps.now() - scan.startedAt > elapsedMs)
        scan.controller.abort(new EngineBusy(`The engines had too little time for the scan in ${elapsedMs} ms`))
    }
  }

  return {
    /** Runs a scan; the signal is aborted with `WorkExceeded` or `EngineBusy` when the scan must end. */
    async run<T>(scan: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const running: Running = { workMs: 0, startedAt: deps.now(), controller: new AbortController() }
      if (timer === undefined) {
        lastProcessorMs = deps.readProcessorMs()
        timer = setInterval(tick, tickMs).unref()
      }
      scans.add(running)
      try {
        return await scan(running.controller.signal)
      } finally {
        scans.delete(running)
      }
    },
  }
}

export type WorkClock = ReturnType<typeof makeWorkClock>
