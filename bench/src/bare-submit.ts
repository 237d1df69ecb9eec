import { hash, randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { drainBarely } from './bare-drain.ts'

/**
 * The minimum work of a submission: reads and hashes the body, and counts, charges and stores it with its job in one
 * call of the gate, on a database of its own. No form, no checks, no type, no encryption, no log. `GET /drain` runs
 * the jobs.
 */
const [dataDir = '', socket = ''] = process.argv.slice(2)
const { config } = loadConfig({ ...process.env, ASSAY_DATA_DIR: dataDir })
const log = makeLogger({ level: 'warn', region: 'bench' })
const { database, registration, close } = await openStores(config, 'service', log)
const { apiKey } = await registration.register({ name: 'hot', plan: 'unlimited' })
const keyDigest = toKeyDigest(apiKey)
const gate = makeAdmissionGate(database)
const sealed = randomBytes(1024 + 128)
const queue = 'bench'

const submit = async (body: Buffer): Promise<string> => {
  const id = randomUUID()
  const metadata = { hash_sha1: hash('sha1', body), hash_sha256: hash('sha256', body) }
  const { outcome } = await gate.admit({
    keyDigest,
    countsRequest: true,
    scan: {
      id,
      kind: 'malware',
      mode: 'async',
      region: 'bench',
      status: 'pending',
      signals: null,
      metadata,
      contentLength: 1024,
      contentType: 'text/plain',
      contentName: 'queued.txt',
      createdAt: new Date(),
      completedAt: null,
    },
    job: { queue, source: { at: 'row', sealed }, callbackUrl: null },
  })
  if (outcome !== 'admitted') throw new Error(`The gate answers ${outcome}`)
  return id
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', async () => {
    const answer =
      request.method === 'GET'
        ? { drained: await drainBarely({ pool: database.pool, queue, socket }) }
        : { id: await submit(Buffer.concat(chunks)) }
    const body = JSON.stringify(answer)
    response.writeHead(202, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/` })}\n`)
})
process.on('SIGTERM', () => void close().finally(() => process.exit()))
