import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { waitUntil } from './wait-until.ts'

const openssl = 'openssl'

/** Text that only the second clamd finds, and the name of the finding. */
export const secondOnly = 'a line that the second opinion knows'
export const secondFinding = 'Second.Opinion'

/** A clamd that the operator runs, with one signature of its own, behind a proxy that speaks TLS. */
export async function openSecondClamd() {
  const dir = mkdtempSync(join(tmpdir(), 'assay-second-'))
  const [socket, keyFile, certFile] = [join(dir, 'clamd.sock'), join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile]
  const subject = ['-subj', '/CN=second.example.com', '-addext', 'subjectAltName=DNS:second.example.com']
  execFileSync(openssl, ['req', '-x509', ...newKey, '-out', certFile, '-days', '2', ...subject], { stdio: 'ignore' })
  const database = join(dir, 'db')
  mkdirSync(database)
  writeFileSync(join(database, 'own.ndb'), `${secondFinding}:0:*:${Buffer.from(secondOnly).toString('hex')}\n`)
  const config = join(dir, 'clamd.conf')
  writeFileSync(config, `Foreground yes\nLocalSocket ${socket}\nDatabaseDirectory ${database}\n`)
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }
  let child = start()

  function start() {
    const started = spawn('clamd', ['--config-file', config], { stdio: 'ignore', env })
    started.unref()
    return started
  }

  const isAnswering = () =>
    new Promise<boolean>((resolve) => {
      const probe = connect(socket, () => probe.write('zPING\0'))
      probe.on('data', () => {
        probe.destroy()
        resolve(true)
      })
      probe.on('error', () => resolve(false))
    })
  await waitUntil('the second clamd to answer', isAnswering)

  let receivedBytes = 0
  const proxy = createServer({ key: readFileSync(keyFile), cert: readFileSync(certFile) }, (outer) => {
    const inner = connect(socket)
    inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
    outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
    outer.on('data', (bytes) => {
      receivedBytes += bytes.length
    })
    outer.pipe(inner).pipe(outer)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  proxy.unref()

  return {
    address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    certFile,
    /** Bytes that clients have sent. */
    countReceived: () => receivedBytes,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    async restart() {
      child = start()
      await waitUntil('the second clamd to answer again', isAnswering)
    },
    close() {
      child.kill('SIGKILL')
      proxy.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
