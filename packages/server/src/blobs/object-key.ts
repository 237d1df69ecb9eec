import { createSecretKey } from 'node:crypto'
import { drawRandom } from '../domain/draw-random.ts'
import { type FrameKey, noncePrefixBytes } from './frames.ts'
import { type MasterKey, wrappedKeyBytes } from './master-key.ts'

/** What stands before the frames of an object: its key, wrapped, and what its nonces begin with. */
export const objectHeaderBytes = wrappedKeyBytes + noncePrefixBytes

export function newObjectKey(master: MasterKey): { frameKey: FrameKey; header: Buffer } {
  const [key, noncePrefix] = [drawRandom(32), drawRandom(noncePrefixBytes)]
  const header = Buffer.concat([master.wrap(key), noncePrefix])
  return { frameKey: { key: createSecretKey(key), noncePrefix }, header }
}

/** Throws when the header was made under another master key, or was wiped. */
export const openObjectKey = (header: Buffer, master: MasterKey): FrameKey => ({
  key: createSecretKey(master.unwrap(header.subarray(0, wrappedKeyBytes))),
  noncePrefix: Buffer.from(header.subarray(wrappedKeyBytes, objectHeaderBytes)),
})
