import { join } from 'node:path'
import { openDiskSpace } from '../blobs/disk-space.ts'
import { makeMemoryBudget } from '../blobs/memory-content.ts'
import type { Config } from '../config/load-config.ts'
import { readFileLimit } from '../runtime/file-limit.ts'

const megabyte = 1024 * 1024
/** 64 uploads of 1 MB at once need no file, and a thousand slow ones stay small. */
const contentMemoryBytes = 64 * megabyte

/** Connections to the database and the engines, pipes to processes, what is listened on. A request may need one more. */
const filesForOthers = 160

/** What clients and their content may take: connections, memory, disk. */
export async function openBounds({ diskReserve, jobContent, maxConnections, blobs }: Config, dataDir: string) {
  const fileLimit = readFileLimit()
  const byFiles = Math.max(1, Math.floor((fileLimit - Math.min(filesForOthers, fileLimit / 2)) / 2))
  const reserveBytes = diskReserve * megabyte
  // Elsewhere than on this disk it is the store that has the bound.
  const hasBudget = jobContent !== undefined && blobs.at === 'disk'
  const budget = !hasBudget ? undefined : { dir: join(dataDir, 'jobs'), bytes: jobContent * megabyte }
  return {
    maxConnections: Math.min(maxConnections, byFiles),
    memory: makeMemoryBudget({ maxBytes: contentMemoryBytes }),
    disk: await openDiskSpace({ dir: dataDir, reserveBytes }),
    jobDisk: await openDiskSpace({ dir: dataDir, reserveBytes, budget }),
  }
}
