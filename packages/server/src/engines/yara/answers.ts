import type { Readable } from 'node:stream'
import { type Answer, maxAnswerBytes } from './wire.ts'

/** Gives each answer that arrives to `take`. */
export function readAnswers(pipe: Readable, handlers: { take(answer: Answer): void; fail(error: Error): void }) {
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
      handlers.fail(new Error('The YARA process answered nonsense', { cause: error }))
    }
    parts = all.length === 0 ? [] : [all]
    bytes = all.length
  })
}
