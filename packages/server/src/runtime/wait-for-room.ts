import type { Writable } from 'node:stream'

/**
 * Resolves when the stream takes more, when it is closed, and at once when it was closed before. `others` are further
 * events of the stream that end the wait.
 */
export async function waitForRoom(stream: Writable, others: string[] = []): Promise<void> {
  if (stream.destroyed) return
  const names = ['drain', 'close', ...others]
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const name of names) stream.off(name, done)
      resolve()
    }
    for (const name of names) stream.on(name, done)
  })
}
