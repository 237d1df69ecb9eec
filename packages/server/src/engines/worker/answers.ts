import type { Readable } from 'node:stream'
import { maxAnswerBytes } from './wire.ts'

/** Gives each answer that arrives to `take`. What is no answer goes to `fail`. */
export function readAnswers<Answer>(
  pipe: Readable,
  handlers: { take(answer: Answer): void; fail(cause: unknown): void },
) {
  let parts: Buffer[] = []
  let bytes = 0

  pipe.on('data', (part: Buffer) => {
    parts.push(part)
    bytes += part.length
    if (bytes < 4) return
    let all = parts.length === 1 ? part : Buffer.concat(parts)
    try {
      while (all.length >= 4) {
        const length = all.readUInt32LE(0)
        if (length > maxAnswerBytes) throw new Error(`An answer of ${length} bytes`)
        if (all.length < 4 + length) break
        handlers.take(JSON.parse(all.toString('utf8', 4, 4 + length)))
        all = all.subarray(4 + length)
      }
    } catch (error) {
      handlers.fail(error)
    }
    parts = all.length === 0 ? [] : [all]
    bytes = all.length
  })
}
