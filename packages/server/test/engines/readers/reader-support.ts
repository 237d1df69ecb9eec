import { type Members, openBufferSource, type Reader, type Reading } from '../../../src/engines/unpack/child/reader.ts'

export type Given = { path: string; bytes: Buffer; isSeen: boolean }

/** Takes members into memory. */
export function collectMembers(): { given: Given[]; members: Members } {
  const given: Given[] = []
  return {
    given,
    members: {
      async give({ path, pieces, isSeen = false }) {
        const read: Uint8Array[] = []
        try {
          for await (const piece of pieces) read.push(Buffer.from(piece))
        } finally {
          given.push({ path, bytes: Buffer.concat(read), isSeen })
        }
      },
    },
  }
}

/** Reads content with one reader, which must recognise it. */
export async function readWith(reader: Reader, content: Buffer): Promise<Reading & { given: Given[] }> {
  const source = openBufferSource(content)
  if (!reader.recognizes(source)) throw new Error(`The reader of ${reader.name} does not recognise the content`)
  const { given, members } = collectMembers()
  return { ...(await reader.read(source, members)), given }
}

/** Changes and cuts samples at random, the same in every run, and reads each: the reader must never throw. */
export async function fuzzReader(reader: Reader, samples: Buffer[], rounds: number) {
  let state = 12_345
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  for (let round = 0; round < rounds; round++) {
    const sample = Buffer.from(samples[round % samples.length] ?? '')
    for (let change = 0; change <= random(6); change++)
      sample[random(sample.length)] = [0, 255, random(256)][random(3)] ?? 0
    const content = random(3) === 0 ? sample.subarray(0, random(sample.length)) : sample
    const source = openBufferSource(content)
    if (reader.recognizes(source)) await reader.read(source, collectMembers().members)
  }
}
