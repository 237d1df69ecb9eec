import { availableParallelism, totalmem } from 'node:os'
import { maxContentBytes } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
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
