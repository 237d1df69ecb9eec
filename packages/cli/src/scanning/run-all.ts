/** Processes up to `parallel` targets at a time, requesting each next target only when there is room for it. */
export async function runAll<T>(
  targets: AsyncGenerator<T>,
  { parallel, signal, work }: { parallel: number; signal: AbortSignal; work(target: T): Promise<void> },
): Promise<void> {
  const worker = async () => {
    while (!signal.aborted) {
      const { done, value } = await targets.next()
      if (done || signal.aborted) return
      await work(value)
    }
  }
  try {
    await Promise.all(Array.from({ length: parallel }, worker))
  } finally {
    await targets.return(undefined)
  }
}
