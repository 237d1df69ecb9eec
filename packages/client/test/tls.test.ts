import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { newClient } from '@assay/client'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { buildClient } from './build-client.ts'
import { openSink } from './sink.ts'

const openssl = 'openssl'
const program = fileURLToPath(new URL('upload-once.mjs', import.meta.url))
const bytes = 20 * 1024 * 1024

test('a file is sent over https only if the certificate is trusted', { skip: alreadyTested }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const [certFile, keyFile, path] = [join(dir, 'cert.pem'), join(dir, 'key.pem'), join(dir, 'large.bin')]
  const names = ['-subj', '/CN=assay', '-addext', 'subjectAltName=IP:127.0.0.1']
  const form = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync(openssl, ['req', '-x509', ...form, ...names, '-keyout', keyFile, '-out', certFile], {
    stdio: 'ignore',
  })
  writeFileSync(path, '')
  truncateSync(path, bytes)
  const sink = await openSink(t, { cert: readFileSync(certFile), key: readFileSync(keyFile) })

  const { malware } = newClient({ apiKey: 'key', baseUrl: sink.url, retries: 0 })
  await assert.rejects(malware.submitFile(path), {
    name: 'ConnectionFailed',
    message: /: the certificate is not valid\./,
  })
  assert.equal(sink.received(), 0)

  const entry = join(buildClient(), 'node.js')
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certFile }
  const { stdout } = await promisify(execFile)(process.execPath, [program, entry, sink.url, path], { env })
  assert.equal((JSON.parse(stdout) as { sent: number }).sent, bytes)
  assert(sink.received() > bytes)
})
