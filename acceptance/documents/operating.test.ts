import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { newZip, eicar } from '../support/archives.ts'
import { makeAdmin } from '../support/console.ts'
import { followDocument } from '../support/follow-document.ts'
import { findFreePort } from '../support/free-port.ts'
import { world } from '../support/origin.ts'
import { makeReadersDirectory, toReadersEnvironment } from '../support/readers-directory.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const repository = new URL('../../', import.meta.url).pathname
const assay = 'npm run --silent assay --'
const dir = makeReadersDirectory()
const write = (name: string, text: string | Buffer) => writeFileSync(join(dir, name), text)
const port = await findFreePort()
const url = `http://127.0.0.1:${port}`
let receiver: Receiver
let postgres: Awaited<ReturnType<typeof openTestPostgres>>

before(async () => {
  receiver = await openReceiver((path) =>
    path === '/in' ? { status: 500, text: 'no such shop' } : { status: 200, text: 'thanks' },
  )
  postgres = await openTestPostgres()
})
after(async () => {
  await receiver.close()
  await postgres.close()
  rmSync(dir, { recursive: true, force: true })
})

followDocument({
  document: 'docs/operating.md',
  test: import.meta.filename,
  dir,
  env: {
    ...toReadersEnvironment(dir),
    ASSAY_PORT: String(port),
    ASSAY_OUTBOUND_ALLOW: world,
    ASSAY_SIGNATURE_HOURS: '0',
    ASSAY_WEBHOOK_RETRIES: '1s,5m',
  },
  values: () => [
    ['127.0.0.1:8080', `127.0.0.1:${port}`],
    ['"metrics_port":9080', `"metrics_port":${port + 1000}`],
    ['/var/lib/assay', join(dir, 'data')],
    ['/opt/assay', repository.replace(/\/$/, '')],
    ['/backups', join(dir, 'backups')],
    ['/srv/assay', join(dir, 'restored')],
    ['/media/stick', join(dir, 'stick')],
    ['https://hooks.example.com', receiver.url],
    ['https://shop.example.com', receiver.url],
    ['box1', hostname()],
  ],
  before: {
    [`${assay} serve --json`]: async ({ greeting }) => {
      await makeAdmin(url, '').comeIn(/http\S+welcome#\S+/.exec(greeting())?.[0] ?? '', 'ada@example.com')
      return undefined
    },
  },
})
