/** Iterates over a stream, which not every browser supports. `return` does not wait for a pending chunk. */
export function iterateStream(stream: ReadableStream<Uint8Array>): AsyncIterableIterator<Uint8Array> {
  const reader = stream.getReader()
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      const { done, value } = await reader.read()
      return done ? { done, value: undefined } : { done, value }
    },
    async return() {
      await reader.cancel().catch(() => {})
      return { done: true, value: undefined }
    },
  }
}
