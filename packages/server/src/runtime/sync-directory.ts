import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** Syncs a directory, so that the names of its files survive a power failure. */
export async function syncDirectory(dir: string) {
  const handle = await open(dir)
  await handle.sync().finally(() => handle.close())
}

/** Does the same as `syncDirectory`, for callers that cannot wait for a promise. */
export function syncDirectorySync(dir: string) {
  const handle = openSync(dir, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
