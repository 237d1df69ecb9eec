import type { Doubt } from '../../domain/ports/engines.ts'
import type { JobEnd } from './frames.ts'

const failed = 2
const outOfMemory = 8

/** What 7-Zip's end leaves open. Only its success means that every member was given whole. */
export function listDoubts(end: JobEnd, type: string | undefined): Doubt[] {
  const { code, complaints, ignored, rewritten } = end
  const doubts = new Set<Doubt>()
  if (complaints.some((line) => encryption.test(line))) doubts.add('EncryptedContent')
  if (code === outOfMemory || complaints.some((line) => memory.test(line))) doubts.add('ScanLimitExceeded')
  const isExplained = doubts.size > 0 || (code === failed && complaints.length === 0 && ignored > 0)
  // An encrypted member and a broken one: both are to be told.
  const hasOther = complaints.some((line) => !encryption.test(line) && !memory.test(line) && !heading.test(line))
  if (rewritten || hasOther || mayHideInTail(end, type) || (code !== 0 && !isExplained))
    doubts.add('UnsupportedContainer')
  return [...doubts]
}

const encryption = /encrypted|wrong password/i
const memory = /allocate|enough memory/i
/** Begins a list, or names the container. */
const heading = /^(?:ERRORS?|WARNINGS?):\s*(?:\/content)?$/

/** A member follows the other here, and 7-Zip takes a broken one for the end of all, with success. */
const sequential = new Set(['rar', 'rar5', 'tar', 'cpio', 'ar', 'arj', 'lzh'])

/** Of programs with a container behind them, this much is their signature. */
const maxSignatureBytes = 65_536

/** What has a directory names its members there, and what follows is padding or the footer of a disk image. */
function mayHideInTail({ members, tailBytes }: JobEnd, type: string | undefined): boolean {
  if (tailBytes === 0) return false
  if (type === undefined) return members === 0 || tailBytes > maxSignatureBytes
  return members === 0 || sequential.has(type)
}
