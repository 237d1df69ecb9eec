import { setTimeout as wait } from 'node:timers/promises'

/** Bounds of the pause between two checks, in milliseconds; it is a twentieth of the time waited so far. */
const pauseMs = { min: 5, max: 100 }

export async function waitFor(isSo: () => boolean | Promise<boolean>, ms = 60_000) {
  const start = performance.now()
  while (!(await isSo())) {
    const waitedMs = performance.now() - start
    if (waitedMs > ms) throw new Error(`Not so within ${ms} ms: ${isSo}`)
    await wait(Math.min(Math.max(waitedMs / 20, pauseMs.min), pauseMs.max))
  }
}
