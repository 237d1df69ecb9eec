/** Waits for it, but not longer than that. */
export async function atMost(work: Promise<unknown> | undefined, ms: number): Promise<void> {
  if (work === undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([work, promise]).finally(() => clearTimeout(timer))
}
