/** Works on up to `parallel` targets at a time; the next is asked for when there is room. Ends when all are done, or aborted. */
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
