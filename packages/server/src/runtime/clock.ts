export const systemClock = { now: () => new Date() }

/** Waits for `work`, but not longer than `ms`; without `ms`, for as long as it takes. */
export async function waitAtMost(work: Promise<unknown> | undefined, ms?: number): Promise<void> {
  if (work === undefined) return
  const { promise: timeout, resolve } = Promise.withResolvers<void>()
  const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
  await Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
