/** Pauses between two looks, in milliseconds. A pause is a twentieth of the time waited so far, between these bounds. */
const pauseMs = { min: 10, max: 150 }

/** Waits until a condition holds. Tests wait with this function and never for a fixed time. */
export async function waitUntil(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 120_000) {
  // Not Date.now(), whose clock some tests mock.
  const startedAt = performance.now()
  while (!(await holds())) {
    const waitedMs = performance.now() - startedAt
    if (waitedMs > timeoutMs) throw new Error(`Waited ${timeoutMs} ms for ${what}`)
    const ms = Math.min(Math.max(waitedMs / 20, pauseMs.min), pauseMs.max)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
}
