import { lstat } from 'node:fs/promises'
import type { FilePath } from '../targets/file-path.ts'
import type { Target } from '../targets/target.ts'
import { walk } from '../targets/walk.ts'
import { wait } from '../wait.ts'

type FileTarget = Extract<Target, { kind: 'file' }>
type Unreadable = Extract<Target, { kind: 'unreadable' }>

/** A file to scan now; `fingerprint` shows later whether it is still the same file. */
export type Arrival = FileTarget & { fingerprint: string }

/**
 * `waiting` until the file has settled; `reported` files are not scanned again in this run, `done` files not after a
 * restart either. All states last until the file changes.
 */
type State = 'waiting' | 'reported' | 'done'

type Known = {
  fingerprint: string
  /** Time since which the file has had this fingerprint. */
  since: number
  state: State | 'scanning'
  /** Last walk of the directory in which the file was found. */
  round: number
}

export type ArrivalOptions = {
  root: FilePath
  settleMs: number
  intervalMs: number
  isExcluded(path: FilePath): boolean
  /** Fingerprints by path of the files that an earlier run completed. */
  done: Map<string, string>
  signal: AbortSignal
  /** No file is returned before this time. */
  pausedUntil(): number
  onUnreadable(target: Unreadable): void
}

/**
 * Walks the directory again and again, and returns each file once it has not changed for `settleMs`. Polling works on
 * every file system; change notifications do not, and are lost under load.
 */
export function makeArrivals(options: ArrivalOptions) {
  const { root, settleMs, intervalMs, isExcluded, done, signal, onUnreadable } = options
  const files = new Map<string, Known>()
  const reported = new Set<string>()

  async function* listArrivals(): AsyncGenerator<Arrival> {
    for (let round = 1; !signal.aborted; round++) {
      for await (const target of walk(root, { isExcluded })) {
        if (signal.aborted) return
        if (target.kind === 'unreadable') reportOnce(target)
        if (target.kind !== 'file') continue
        const fingerprint = await findFingerprint(target.path)
        if (fingerprint === undefined || !isDue(target.path.display, fingerprint, round)) continue
        await wait(options.pausedUntil() - Date.now(), signal)
        if (!signal.aborted) yield { ...target, fingerprint }
      }
      for (const [path, known] of files) if (known.round !== round && known.state !== 'scanning') files.delete(path)
      await wait(intervalMs, signal)
    }
  }

  function isDue(path: string, fingerprint: string, round: number): boolean {
    const known = files.get(path)
    const isNew = known === undefined || (known.fingerprint !== fingerprint && known.state !== 'scanning')
    if (isNew) {
      const state = known === undefined && done.get(path) === fingerprint ? 'done' : 'waiting'
      files.set(path, { fingerprint, since: Date.now(), state, round })
      return false
    }
    known.round = round
    if (known.state !== 'waiting' || Date.now() - known.since < settleMs) return false
    known.state = 'scanning'
    return true
  }

  function reportOnce(target: Unreadable) {
    const error = `${target.path.display}\n${target.code}`
    // A file that disappeared between listing and opening is not an error.
    if (reported.has(error) || target.code === 'ENOENT') return
    reported.add(error)
    onUnreadable(target)
  }

  return {
    listArrivals,
    /** Records the result of a scan; with `waiting` the file is returned again. */
    setState({ path, fingerprint }: Arrival, state: State) {
      const known = files.get(path.display)
      if (known !== undefined && known.fingerprint === fingerprint) known.state = state
    },
    forget({ path }: Arrival) {
      files.delete(path.display)
    },
    /** Path and fingerprint of each completed file. */
    *listDone(): Generator<[string, string]> {
      for (const [path, { fingerprint, state }] of files) if (state === 'done') yield [path, fingerprint]
    },
  }
}

/** Changes when the content changes or another file takes the place of this one. */
export async function findFingerprint({ raw }: FilePath): Promise<string | undefined> {
  const stats = await lstat(raw).catch(() => undefined)
  return stats?.isFile() ? `${stats.size}-${stats.mtimeMs}-${stats.ino}` : undefined
}
