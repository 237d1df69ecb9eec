/**
 * The program of a thread that hashes content, for digest-threads.ts, which has the types of its messages. This file is
 * plain JavaScript: to remove types, Node would load a compiler into each thread, which takes 14 MB.
 */
const { createHash } = require('node:crypto')
const { parentPort } = require('node:worker_threads')

/** The hashes of each content that is not complete, by its id. */
const running = new Map()

parentPort.on('message', ({ id, pieces, isLast, wantsSha1 }) => {
  if (pieces === undefined) {
    running.delete(id)
    return
  }
  const { sha1, sha256 } = running.get(id) ?? {
    sha1: wantsSha1 ? createHash('sha1') : undefined,
    sha256: createHash('sha256'),
  }
  running.set(id, { sha1, sha256 })
  for (const piece of pieces) {
    sha1?.update(piece)
    sha256.update(piece)
  }
  let digests
  if (isLast) {
    digests = { sha1: sha1?.digest('hex'), sha256: sha256.digest('hex') }
    running.delete(id)
  }
  parentPort.postMessage(
    { pieces, digests },
    pieces.map(({ buffer }) => buffer),
  )
})
