import type { Members } from '../reader.ts'

/** Data that a text holds in an encoding. */
export type EncodedData = {
  /** The name of the member that it becomes. */
  path: string
  decode(): Generator<Buffer>
  /** Whether the data is none that is scanned, such as a key. Undefined where all data is scanned. */
  isLeftOut?(): boolean
}

/** Data that is a member of its own. Ordinary text has less; all that follows is one member. */
const maxMembers = 1000

/**
 * Gives the encoded data that a text holds, and returns whether there is any. `list` may be called twice; `further` is
 * the name of the member for what is given together.
 */
export async function giveEncoded(members: Members, further: string, list: () => Generator<EncodedData>) {
  let count = 0
  for (const { path, decode, isLeftOut } of list()) {
    if (++count > maxMembers) {
      await members.give({ path: further, pieces: decodeFurther(list()) })
      break
    }
    if (isLeftOut?.() !== true) await members.give({ path, pieces: decode() })
  }
  return count > 0
}

function* decodeFurther(list: Generator<EncodedData>): Generator<Buffer> {
  let count = 0
  for (const { decode } of list) {
    if (++count <= maxMembers) continue
    yield* decode()
    yield lineEnd
  }
}

const lineEnd = Buffer.from('\n')
