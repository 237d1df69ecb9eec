import type { Content } from './content.ts'
import { findMediaType } from './media-type.ts'

const types = new Set(['message/rfc822', 'application/mbox', 'application/pdf', 'text/rtf', 'application/rtf'])
const oleMagic = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/**
 * Documents and mails that carry other files in them, and that no unpacker of ours opens: only an engine like ClamAV looks
 * inside.
 */
export async function isCompound({ head, bytes }: Content): Promise<boolean> {
  if (head.subarray(0, oleMagic.length).equals(oleMagic)) return true
  const type = await findMediaType(head, bytes)
  return types.has(type.split(';')[0] ?? '')
}
