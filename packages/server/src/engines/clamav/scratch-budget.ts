import { mayHoldContent } from '../../domain/content/container.ts'
import type { Content } from '../../domain/content/content.ts'
import { EngineBusy, maxUnpackedBytes, type Work } from '../../domain/ports/engines.ts'
import { makeSemaphore } from '../../domain/semaphore.ts'

/** clamd could not write to its scratch directory, because it is full. */
export class ScratchFull extends EngineBusy {}

/** Small content that holds no other is not counted: all kept connections together need a few megabytes for it. */
const freeBytes = 256 * 1024
const megabyte = 2 ** 20
const maxWaitMs = 30_000
/** The part of the directory that background jobs leave free for callers. */
const reservedPart = 1 / 4

/** Content that holds other content rarely becomes larger than this many times its size; bombs do. */
const usualRatio = 100

/**
 * Divides the scratch directory of clamd between scans, so that what one scan unpacks cannot take the room of another.
 * Each reserves what content of its size usually needs, and waits while there is no room. Where that was too little,
 * clamd fails, for the content that took too much or for another: then the scan is repeated with the whole directory
 * for itself.
 */
export function makeScratchBudget({ megabytes }: { megabytes: number }) {
  const reserved = Math.floor(megabytes * reservedPart)
  const semaphore = makeSemaphore({ count: megabytes, maxWaiting: 10_000, maxWaitMs, reserved })

  return {
    /** Rejects with `ScratchFull` only when the whole directory is too small for the content. */
    async use<T>(content: Content, scan: () => Promise<T>, work: Work): Promise<T> {
      const weight = Math.min(megabytes, estimateMegabytes(content))
      try {
        return weight === 0 ? await scan() : await semaphore.use(scan, work, weight)
      } catch (error) {
        if (!(error instanceof ScratchFull) || weight === megabytes) throw error
        return await semaphore.use(scan, work, megabytes)
      }
    },
  }
}

export type ScratchBudget = ReturnType<typeof makeScratchBudget>

/** Content that holds other content, or is large, may take clamd seconds. All other content takes milliseconds. */
export const isCostly = (content: Content) => estimateMegabytes(content) > 0

function estimateMegabytes(content: Content): number {
  const { bytes } = content
  if (!mayHoldContent(content)) return bytes <= freeBytes ? 0 : Math.ceil(bytes / megabyte)
  return Math.ceil((bytes + Math.min(maxUnpackedBytes, bytes * usualRatio)) / megabyte)
}
