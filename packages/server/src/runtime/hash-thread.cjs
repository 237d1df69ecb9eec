/**
 * The program of the thread that hashes passwords, for password-hashing.ts. This file is plain JavaScript: to remove
 * types, Node would load a compiler into the thread, which takes 14 MB.
 */
const { argon2Sync } = require('node:crypto')
const { readlinkSync } = require('node:fs')
const { setPriority } = require('node:os')
const { parentPort } = require('node:worker_threads')

// The thread yields to scans: on Linux each thread has a priority of its own, under the number that /proc gives it.
try {
  setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), 10)
} catch {
  // Without /proc the thread keeps the priority of the process.
}

parentPort.on('message', ({ id, input }) => {
  try {
    parentPort.postMessage({ id, tag: argon2Sync('argon2id', input) })
  } catch (error) {
    parentPort.postMessage({ id, failure: error.message })
  }
})
