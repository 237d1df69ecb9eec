import { lstat } from 'node:fs/promises'
import type { Target } from '../targets/target.ts'
import type { Expected } from './progress.ts'

/** Goes through all targets a second time, ahead of the scans, so that a bar can tell how far they are. */
export function expectAll(targets: AsyncGenerator<Target>, signal: AbortSignal): () => Expected {
  const expected: Expected = { files: 0, bytes: 0, isAll: false }
  const work = async () => {
    for await (const target of targets) {
      if (signal.aborted) return
      expected.files++
      if (target.kind !== 'file') continue
      expected.bytes += (await lstat(target.place.raw).catch(() => undefined))?.size ?? 0
    }
    expected.isAll = true
  }
  // Without it there is no bar, and that is all.
  work().catch(() => {})
  return () => expected
}
