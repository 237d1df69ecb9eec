import { availableParallelism, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { maxContentBytes } from '@assay/contract'
import { openContentStore } from '../blobs/content-store.ts'
import { openDiskSpace } from '../blobs/disk-space.ts'
import { makeMemoryBudget, makeRecentHeads } from '../blobs/memory-content.ts'
import type { Config } from '../config/load-config.ts'
import type { Closers } from '../runtime/closers.ts'
import { makeDigestThreads } from '../runtime/digest-threads.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { countHttpProcesses } from './connections.ts'

const megabyte = 1024 * 1024

/** Bytes of content that may be in memory: set by the operator, or an eighth of what the machine or container has. */
export function findContentMemory({ contentMemory }: Pick<Config, 'contentMemory'>): number {
  if (contentMemory !== undefined) return contentMemory * megabyte
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.min(2048 * megabyte, Math.max(64 * megabyte, memory / 8))
}

/**
 * Divides the memory for content between the main process and the HTTP processes. Of their content, the main process
 * may hold a copy while it is scanned, hence they get a third of the memory and leave as much for the copies.
 */
export function divideContentMemory(config: Pick<Config, 'contentMemory' | 'httpProcesses' | 'roles'>) {
  const total = findContentMemory(config)
  const processes = countHttpProcesses(config)
  return processes === 1 ? { ofMain: total, ofProcess: 0 } : { ofMain: total / 3, ofProcess: total / 3 / processes }
}

/**
 * Bytes of pictures that may be in memory: as many as the image processes decode at once. The others wait for a process,
 * longer than it takes to read them from their encrypted files.
 */
export const findPictureMemory = (config: Pick<Config, 'nsfwProcesses'>): number =>
  countImageProcesses(config) * maxContentBytes.nsfw_image.sync

/** Counts the image processes: set by the operator, or one for each core. */
export const countImageProcesses = ({ nsfwProcesses }: Pick<Config, 'nsfwProcesses'>): number =>
  nsfwProcesses ?? availableParallelism()

/** Opens the store of content that is being scanned, and returns it with the limits that other stores share. */
export async function openContents(
  config: Pick<Config, 'dataDir' | 'diskReserve'>,
  limits: { memoryBytes: number; pictureBytes: number; recentHeads: number },
  { metrics, closers }: { metrics: Metrics; closers: Closers },
) {
  const dataDir = resolve(config.dataDir)
  const memory = makeMemoryBudget({ maxBytes: limits.memoryBytes })
  const pictureMemory = makeMemoryBudget({ maxBytes: limits.pictureBytes, within: memory })
  metrics.gauge('assay_content_memory_bytes', 'Bytes of content held in memory.', memory.countBytes)
  const threads = makeDigestThreads()
  closers.add(threads.close)
  const disk = await openDiskSpace({ dir: dataDir, reserveBytes: config.diskReserve * megabyte })
  const recentHeads = makeRecentHeads({ entries: limits.recentHeads })
  const dir = join(dataDir, 'content')
  const contents = openContentStore({ dir, memory, pictureMemory, disk, threads, recentHeads })
  closers.add(contents.close)
  return { contents, memory, disk, threads }
}
