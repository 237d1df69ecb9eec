import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { findQuorum } from '../../src/config/setting.ts'
import { type Content, headBytes } from '../../src/domain/content/content.ts'
import type { ContentStore } from '../../src/domain/ports/content-store.ts'
import type { EngineReport, EngineState, ScanEngine, Unpacker } from '../../src/domain/ports/engines.ts'
import type { VerdictPolicy } from '../../src/domain/scans/ballot.ts'

export const nothing: EngineReport = { findings: [], doubts: [], suspectsContainer: false }

export const state: EngineState = {
  version: 'Test 1.0',
  verdictVersion: 'version 1',
  signatures: 1,
  signaturesAt: undefined,
}

export function newPolicy(text: string): VerdictPolicy {
  const quorum = findQuorum(text)
  if (quorum === undefined) throw new Error(`${text} is no policy`)
  return { text, quorum, version: text }
}

/** An engine that finds the word `virus`. */
export function newEngine(change: Partial<ScanEngine> & { seen?: string[] } = {}): ScanEngine {
  const { seen, ...rest } = change
  return {
    name: 'Test',
    kind: 'malware',
    opensContainers: false,
    marksContainers: () => true,
    findState: () => state,
    async scan(content) {
      const text = (await buffer(content.read())).toString('latin1')
      seen?.push(text)
      return text.includes('virus') ? { ...nothing, findings: ['Virus'] } : nothing
    },
    ...rest,
  }
}

/** A container with the signature of 7z, which only the unpacker opens; JSON of its members follows. */
const boxMagic = '7z\xbc\xaf\x27\x1c'
export const box = (...members: string[]) => boxMagic + JSON.stringify(members)

/** An unpacker for `box`. */
export function newUnpacker(change: Partial<Unpacker> = {}): Unpacker {
  return {
    async unpack(content, { take, budget }) {
      const text = (await buffer(content.read())).toString('latin1')
      for (const [i, member] of (JSON.parse(text.slice(boxMagic.length)) as string[]).entries()) {
        if (budget.members-- <= 0 || budget.bytes < member.length) return ['ScanLimitExceeded']
        budget.bytes -= member.length
        await take({ path: `member-${i}`, bytes: toBytes(member) })
      }
      return []
    },
    ...change,
  }
}

export async function* toBytes(text: string) {
  yield Buffer.from(text, 'latin1')
}

/** A content store that counts contents that were not released. */
export function newContents() {
  let held = 0
  const contents: ContentStore = {
    newWriter() {
      const chunks: Buffer[] = []
      return {
        write: (chunk) => void chunks.push(chunk),
        async finish() {
          held++
          return newHeld(Buffer.concat(chunks), () => held--)
        },
        async abort() {},
      }
    },
  }
  return { contents, countHeld: () => held }
}

export const newContent = (text: string, change: Partial<Content> = {}): Content => ({
  ...newHeld(Buffer.from(text, 'latin1'), () => {}),
  ...change,
})

function newHeld(whole: Buffer, onRelease: () => void): Content {
  return {
    bytes: whole.length,
    head: whole.subarray(0, headBytes),
    isInMemory: true,
    whole,
    sha1: createHash('sha1').update(whole).digest('hex'),
    sha256: createHash('sha256').update(whole).digest('hex'),
    async *read(start = 0, end = whole.length) {
      yield whole.subarray(start, end)
    },
    async release() {
      onRelease()
    },
  }
}
