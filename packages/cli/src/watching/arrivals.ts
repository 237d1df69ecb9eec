import { lstat } from 'node:fs/promises'
import type { Place } from '../targets/place.ts'
import type { Target } from '../targets/target.ts'
import { walk } from '../targets/walk.ts'
import { wait } from '../wait.ts'

type FileTarget = Extract<Target, { kind: 'file' }>

/** A file that is due; `print` tells whether it is still the same one later on. */
export type Arrival = FileTarget & { print: string }

/** `told` need not be looked at again in this run, `done` not after a restart either. */
type State = 'growing' | 'told' | 'done'

type Known = {
  print: string
  /** Since when it has looked like this. */
  since: number
  state: State | 'busy'
  round: number
}

export type ArrivalOptions = {
  root: Place
  settleMs: number
  intervalMs: number
  isLeftOut(place: Place): boolean
  /** Prints of files that were done in an earlier run, by path. */
  done: Map<string, string>
  signal: AbortSignal
  /** While this is in the future, nothing is given out. */
  holdUntil(): number
  onFault(target: Target): void
}

/**
 * Looks again and again, and gives out each file once it has stayed the same for a while. Looking works on every file
 * system; notices of changes do not, and are lost when many come.
 */
export function makeArrivals(options: ArrivalOptions) {
  const { root, settleMs, intervalMs, isLeftOut, done, signal, onFault } = options
  const files = new Map<string, Known>()
  const faults = new Set<string>()

  async function* listArrivals(): AsyncGenerator<Arrival> {
    for (let round = 1; !signal.aborted; round++) {
      for await (const target of walk(root, { isLeftOut })) {
        if (signal.aborted) return
        if (target.kind === 'unreadable') tellOnce(target)
        if (target.kind !== 'file') continue
        const print = await findPrint(target.place)
        if (print === undefined || !isDue(target.place.shown, print, round)) continue
        await wait(options.holdUntil() - Date.now(), signal)
        if (!signal.aborted) yield { ...target, print }
      }
      for (const [path, known] of files) if (known.round !== round && known.state !== 'busy') files.delete(path)
      await wait(intervalMs, signal)
    }
  }

  function isDue(path: string, print: string, round: number): boolean {
    const known = files.get(path)
    const isNew = known === undefined || (known.print !== print && known.state !== 'busy')
    if (isNew) {
      const state = known === undefined && done.get(path) === print ? 'done' : 'growing'
      files.set(path, { print, since: Date.now(), state, round })
      return false
    }
    known.round = round
    if (known.state !== 'growing' || Date.now() - known.since < settleMs) return false
    known.state = 'busy'
    return true
  }

  function tellOnce(target: Extract<Target, { kind: 'unreadable' }>) {
    const fault = `${target.place.shown}\n${target.code}`
    if (faults.has(fault) || target.code === 'ENOENT') return
    faults.add(fault)
    onFault(target)
  }

  return {
    listArrivals,
    /** `growing` has it given out again. All of them hold until the file changes. */
    settle({ place, print }: Arrival, state: State) {
      const known = files.get(place.shown)
      if (known !== undefined && known.print === print) known.state = state
    },
    forget({ place }: Arrival) {
      files.delete(place.shown)
    },
    /** By path, to be remembered. */
    *listDone(): Generator<[string, string]> {
      for (const [path, { print, state }] of files) if (state === 'done') yield [path, print]
    },
  }
}

/** Changes with the content, and with the file itself when another takes its place. */
export async function findPrint({ raw }: Place): Promise<string | undefined> {
  const stats = await lstat(raw).catch(() => undefined)
  return stats?.isFile() ? `${stats.size}-${stats.mtimeMs}-${stats.ino}` : undefined
}
