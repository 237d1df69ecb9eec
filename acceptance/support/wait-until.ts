/** Waits until a condition holds. Tests wait with this function and never for a fixed time. */
export async function waitUntil(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 30_000) {
  // Not Date.now(), whose clock some tests mock.
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
