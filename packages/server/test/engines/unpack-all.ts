import type { UnpackBudget, Unpacker } from '../../src/domain/ports/engines.ts'
import { newContent } from './unpack-archives.ts'

export const newBudget = (): UnpackBudget => ({ members: 10_000, bytes: 100_000_000 })

/** Every member, whole and in memory. */
export async function unpackAll(
  unpacker: Unpacker,
  archive: Buffer,
  { spooled = false, budget = newBudget() }: { spooled?: boolean; budget?: UnpackBudget } = {},
) {
  const given: { path: string; bytes: Buffer }[] = []
  const doubts = await unpacker.unpack(newContent(archive, { spooled }), {
    ...{ budget, signal: AbortSignal.timeout(60_000) },
    async take({ path, bytes }) {
      const pieces: Buffer[] = []
      for await (const piece of bytes) pieces.push(piece)
      given.push({ path, bytes: Buffer.concat(pieces) })
    },
  })
  return { given, doubts }
}
