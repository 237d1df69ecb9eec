import { frameBytes, openFrame, sealFrame } from './frames.ts'
import type { MasterKey } from './master-key.ts'
import { newObjectKey, objectHeaderBytes, openObjectKey } from './object-key.ts'

/** Content that fits into one frame needs no file to be stored encrypted. */
export const maxSealedBytes = frameBytes

export function sealBytes(clear: Buffer, master: MasterKey): Buffer {
  const { frameKey, header } = newObjectKey(master)
  return Buffer.concat([header, ...sealFrame(frameKey, 0, true, clear)])
}

/** Throws when it was changed, or sealed under another master key. */
export const unsealBytes = (sealed: Buffer, master: MasterKey): Buffer =>
  openFrame(openObjectKey(sealed, master), 0, true, sealed.subarray(objectHeaderBytes))
