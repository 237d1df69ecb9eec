/**
 * Memory for what is on its way to the store, for all uploads of the process together. Whoever needs some waits until it
 * is free. It is never held while somebody else is waited for but the store: so the wait ends.
 */
export function makePartBuffers({ count, bytes }: { count: number; bytes: number }) {
  const free: Buffer[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let made = 0

  const take = (): Buffer | Promise<Buffer> => {
    const buffer = free.pop()
    if (buffer !== undefined) return buffer
    if (made === count) return new Promise((resolve) => waiting.push(resolve))
    made++
    return Buffer.allocUnsafeSlow(bytes)
  }
  const release = (buffer: Buffer) => {
    const next = waiting.shift()
    if (next === undefined) free.push(buffer)
    else next(buffer)
  }

  return {
    /** The buffer belongs to `work` until that ends. */
    async lend<T>(work: (buffer: Buffer) => Promise<T>): Promise<T> {
      const buffer = await take()
      try {
        return await work(buffer)
      } finally {
        release(buffer)
      }
    },
    countWaiting: () => waiting.length,
  }
}

export type PartBuffers = ReturnType<typeof makePartBuffers>
