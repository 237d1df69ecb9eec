import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eicar, newZip } from '../support/archives.ts'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { makeAdmin } from '../support/console.ts'
import { followDocument } from '../support/follow-document.ts'
import { findFreePort } from '../support/free-port.ts'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { type Listeners, lacksClient, startListeners } from '../support/listeners.ts'
import { type Origin, openOrigin, world } from '../support/origin.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { makeReadersDirectory, toReadersEnvironment } from '../support/readers-directory.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { newShownOutput } from '../support/shown-output.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

type Created = { id: string; api_key: string }
type Delivery = { id: string; scan_id: string }

const pictures = fileURLToPath(new URL('../support/pictures/', import.meta.url))
const dir = makeReadersDirectory()
const inDir = (name: string) => join(dir, name)
const port = await findFreePort()
const settings = {
  ASSAY_PORT: String(port),
  ASSAY_DATA_DIR: inDir('data'),
  ASSAY_OUTBOUND_ALLOW: world,
  ASSAY_SIGNATURE_HOURS: '0',
  ASSAY_SIGNATURE_MAX_AGE: 'off',
  ASSAY_WEBHOOK_RETRIES: '1s,5m',
}
const skip = alreadyTested || (await lacksClamAv(getSharedService().url)) || lacksPrograms('curl')
let service: Listeners
let caller: Created
let receiver: Receiver
let emptyOrigin: Origin

/** The receiver at `/other/assay` refuses the first two attempts and takes the third; others take the first. */
function react(path: string, attempts: number) {
  return path === '/other/assay' && attempts < 2 ? { status: 503, text: 'down for maintenance' } : { status: 204 }
}

const createAccount = async (...options: string[]) =>
  (await service.operate('accounts', 'create', '--name', 'caller', ...options)) as Created

const follow = (document: string, more: Partial<Parameters<typeof followDocument>[0]> = {}) =>
  followDocument({
    documents: [document],
    test: import.meta.filename,
    dir,
    before: {},
    env: { ...toReadersEnvironment(dir), ...settings },
    values: () => [
      ['127.0.0.1:8080', `127.0.0.1:${port}`],
      ['https://hooks.example.com', receiver.url],
      ['https://other.example.com', `${receiver.url}/other`],
      ['https://example.com', emptyOrigin.url],
      ['<id>', caller?.id],
      ['3310', String(service.ports.clamd)],
      ['/home/me', dir],
    ],
    ...more,
  })

after(() => rmSync(dir, { recursive: true, force: true }))

describe('what documents show', { skip }, () => {
  before(async () => {
    execFileSync(inDir('packaging/make-secrets.sh'))
    const key = readFileSync(inDir('secrets/bootstrap_key'), 'utf8')
    for (const name of ['data', 'for-tests']) copyPreparedDatabase(inDir(name))
    const keys = { ASSAY_BOOTSTRAP_KEY: key, ASSAY_CLAMD_LISTEN_KEY: key, ASSAY_ICAP_KEY: key }
    ;[service, receiver, emptyOrigin] = await Promise.all([
      startListeners({ ...settings, ...keys }),
      openReceiver(react),
      openOrigin({}),
    ])
    for (const name of ['eicar.com', 'notes.txt']) writeFileSync(inDir(name), name === 'eicar.com' ? eicar : 'harmless')
    writeFileSync(inDir('invoices.zip'), newZip([{ name: '2026/eicar.com', data: eicar }]))
    copyFileSync(`${pictures}one-in-a-hundred.gif`, inDir('holiday.gif'))
  })
  after(async () => {
    await service.stop()
    await receiver.close()
    await emptyOrigin.close()
  })

  // First, while there is one account: `webhooks test` need not be told which.
  follow('docs/webhooks.md', {
    before: {
      'npm run --silent assay -- webhooks replay': async ({ learn }) => {
        const callback_url = `${receiver.url}/other/assay`
        const first = makeCaller(service.url, readFileSync(inDir('secrets/bootstrap_key'), 'utf8'))
        toId(await first.sendFile('malware', 'submit', eicar, { callback_url }))
        await waitUntil('two attempts', () => receiver.at('/other/assay').length === 2)
        const [delivery] = (await service.operate('webhooks', 'deliveries')) as Delivery[]
        learn('01a1df24-8666-7448-8973-dcd468363a10', delivery?.id ?? '')
        return undefined
      },
      'npm run --silent assay -- webhooks show': async () => {
        await waitUntil('the third attempt', () => receiver.at('/other/assay').length === 3)
        return undefined
      },
    },
  })

  test('docs/webhooks.md shows what comes', async () => {
    const first = makeCaller(service.url, readFileSync(inDir('secrets/bootstrap_key'), 'utf8'))
    const callback_url = `${receiver.url}/assay`
    toId(await first.sendFile('malware', 'submit', eicar, { callback_url, file_name: 'eicar.com' }))
    await waitUntil('the webhook', () => receiver.at('/assay').some(({ body }) => body.includes('eicar.com')))
    const [shown] = readCodeBlocks('docs/webhooks.md').filter(({ language }) => language === 'http')
    const text = shown?.text.replace('hooks.example.com', new URL(receiver.url).host) ?? ''
    newShownOutput().require('a webhook', text, receiver.at('/assay').at(-1)?.raw ?? '')
  })

  follow('docs/console.md', {
    before: {
      'npm run assay -- operators invite': async () => {
        const { path } = (await service.operate('operators', 'invite')) as { path: string }
        await makeAdmin(service.url, '').join(path, 'ada@example.com')
        return undefined
      },
    },
  })

  follow('docs/listeners.md', {
    before: {
      'cat clamd.conf': () =>
        void writeFileSync(inDir('clamd.conf'), `TCPSocket ${service.ports.clamd}\nTCPAddr 127.0.0.1\n`),
    },
    skip: { 'cat clamd.conf': lacksClient('/usr/bin/clamdscan', 'clamdscan') },
  })

  let pictureScans = 0
  follow('docs/interface.md', {
    before: {
      'curl -i -H "X-API-Key: $KEY" http://127.0.0.1:8080/v1/me': async () => {
        caller = await createAccount('--plan', 'standard')
        return { KEY: caller.api_key }
      },
      'curl -i -H "X-API-Key: $KEY" http://127.0.0.1:8080/v1/ping': async () => {
        const { api_key } = await createAccount('--credits', '2', '--rate', '1/1m')
        await makeCaller(service.url, api_key).readSpent()
        return { KEY: api_key }
      },
      // The first time it tells of an overload, which a test key can ask for.
      'curl -i -H "X-API-Key: $KEY" -F file=@holiday.gif': async () => {
        if (pictureScans++ > 0) return { KEY: caller.api_key }
        const options = ['--account', caller.id, '--name', 'overload', '--test']
        const { api_key } = (await service.operate('keys', 'create', ...options)) as Created
        mkdirSync(inDir('overload'))
        writeFileSync(inDir('overload/.curlrc'), 'silent\nheader = "X-Assay-Test: overloaded"\n')
        return { KEY: api_key, CURL_HOME: inDir('overload') }
      },
      'curl ': () => ({ KEY: caller.api_key }),
    },
  })

  follow('docs/packaging.md')

  follow('docs/test-images/README.md', { before: { 'curl ': () => ({ KEY: caller.api_key }) } })

  follow('docs/test-mode.md', {
    before: { 'ASSAY_OUTBOUND_ALLOW=127.0.0.1/32': () => ({ ASSAY_DATA_DIR: inDir('for-tests'), ASSAY_PORT: '0' }) },
  })
})
