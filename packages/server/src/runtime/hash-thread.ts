import { type Argon2Parameters, argon2Sync } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'

// The thread yields to scans: on Linux each thread has a priority of its own, under the number that /proc gives it.
try {
  setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), 10)
} catch {
  // Without /proc the thread keeps the priority of the process.
}

parentPort?.on('message', ({ id, input }: { id: number; input: Argon2Parameters }) => {
  try {
    parentPort?.postMessage({ id, tag: argon2Sync('argon2id', input) })
  } catch (error) {
    parentPort?.postMessage({ id, failure: (error as Error).message })
  }
})
