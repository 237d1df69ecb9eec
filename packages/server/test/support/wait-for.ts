import { setTimeout as wait } from 'node:timers/promises'

export async function waitFor(isSo: () => boolean | Promise<boolean>, ms = 60_000) {
  const end = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`Not so within ${ms} ms: ${isSo}`)
    await wait(5)
  }
}
