import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { maxContentBytes } from '@assay/contract'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { buildClient } from './build-client.ts'
import { openSink } from './sink.ts'

const maxBytes = 120 * 1024 * 1024
const program = fileURLToPath(new URL('upload-once.mjs', import.meta.url))

test('the largest file is sent in under 120 MB of memory, with progress to its last byte', {
  skip: alreadyTested,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const size = maxContentBytes.malware.async
  const path = join(dir, 'large.bin')
  writeFileSync(path, '')
  truncateSync(path, size)
  const entry = join(buildClient(), 'node.js')
  const sink = await openSink(t)
  const { stdout } = await promisify(execFile)(process.execPath, [program, entry, sink.url, path])
  const { calls, sent, peakBytes } = JSON.parse(stdout) as { calls: number; sent: number; peakBytes: number }
  t.diagnostic(`peak ${Math.round(peakBytes / 1024 / 1024)} MB`)
  assert.equal(sent, size)
  assert(calls > 500, `progress was reported ${calls} times`)
  assert(sink.received() > size && sink.received() < size + 1000, `${sink.received()} bytes arrived`)
  assert(peakBytes < maxBytes, `${peakBytes} bytes`)
})
