/** Not every browser can iterate over a stream. */
export async function* iterateStream(stream: ReadableStream<Uint8Array>) {
  const reader = stream.getReader()
  let isDone = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isDone = done
      if (done) return
      yield value
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {})
    reader.releaseLock()
  }
}
