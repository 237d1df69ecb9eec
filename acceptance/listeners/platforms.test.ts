import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eicar, newEncryptedDocx } from '../support/archives.ts'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { type DebianPrograms, fetchDebianPrograms, openDebianPrograms } from '../support/debian-programs.ts'
import { getTaker } from '../support/document-runners.ts'
import { type Listeners, listenerKey, startListeners } from '../support/listeners.ts'
import { type Mailbox, openMailbox } from '../support/mailbox.ts'
import * as platforms from '../support/platform-programs.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Exim and Postfix conflict with each other. */
const packages = [
  ['exim4-daemon-heavy', 'proftpd-core', 'proftpd-mod-clamav', 'libnginx-mod-http-js', 'nginx-light', 'curl'],
  ['postfix', 'clamav-milter', 'amavisd-new', 'rspamd'],
]
const isSkipped = (await lacksClamAv(getSharedService().url)) || alreadyTested
const fetched = isSkipped ? { lacking: 'not needed' } : fetchDebianPrograms(...packages)
const lacking = isSkipped || ('lacking' in fetched && fetched.lacking)

/** Users that the packages would create when they are installed. */
const users = ['Debian-exim', 'postfix', 'amavis', '_rspamd']

const programs: Record<string, (stage: platforms.Stage) => Promise<platforms.Platform>> = {
  Exim: platforms.startExim,
  'Postfix with clamav-milter': platforms.startPostfix,
  amavis: platforms.startAmavis,
  rspamd: platforms.startRspamd,
  ProFTPD: platforms.startProftpd,
  nginx: platforms.startNginx,
}

describe('programs with the settings of docs/platforms.md', { skip: lacking }, () => {
  const running = new Map<string, platforms.Platform>()
  const stored: number[] = []
  const application = createServer((request, response) => {
    let bytes = 0
    request.on('data', (chunk) => {
      bytes += chunk.length
    })
    request.on('end', () => {
      stored.push(bytes)
      response.end('stored')
    })
  })
  /** A second listener replies FOUND where the first one replies ERROR. */
  const strict = `[[listeners]]\nname = "strict"\nkind = "clamd"\naddress = "tcp://127.0.0.1:0"
api_key = "${listenerKey}"\non_failure = "found"\n`
  let dir = ''
  let listeners: Listeners
  let mailbox: Mailbox
  let debian: DebianPrograms

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-platforms-'))
    writeFileSync(join(dir, 'assay.toml'), strict)
    listeners = await startListeners({ ...withoutImages, ASSAY_CONFIG: join(dir, 'assay.toml') })
    await waitUntil('the strict listener', () => listeners.findPort('strict') > 0)
    mailbox = await openMailbox()
    debian = await openDebianPrograms('dir' in fetched ? fetched.dir : '')
    await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve))
    const create = users.map((name, n) => {
      const id = 60_100 + n
      return `sed -i '/^${name}:/d' /etc/passwd /etc/group; echo '${name}:x:${id}:${id}::/:/bin/sh' >> /etc/passwd; echo '${name}:x:${id}:' >> /etc/group`
    })
    debian.run('root', `${create.join('; ')}; grep -q ^postdrop: /etc/group || echo 'postdrop:x:60110:' >> /etc/group`)
    const stage: platforms.Stage = {
      programs: debian,
      clamdPort: listeners.ports.clamd,
      strictClamdPort: listeners.findPort('strict'),
      service: listeners,
      mailbox,
      application: `http://127.0.0.1:${(application.address() as AddressInfo).port}`,
    }
    await Promise.all(Object.entries(programs).map(async ([name, start]) => running.set(name, await start(stage))))
  })
  after(async () => {
    debian?.close()
    application.close()
    await mailbox?.close()
    await listeners?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const send = async (name: string, content: Buffer) => running.get(name)?.send(content)
  /** ProFTPD keeps a file whose scan takes more than five seconds, as it can on a busy machine, so it may try again. */
  const waitForProftpd = (content: Buffer, outcome: string) =>
    waitUntil(`ProFTPD: ${outcome}`, async () => (await send('ProFTPD', content)) === outcome)
  async function assertOutcomes(content: Buffer, { ProFTPD, ...expected }: Record<string, string>) {
    const names = Object.keys(programs).filter((name) => name !== 'ProFTPD')
    const outcomes = await Promise.all(names.map(async (name) => [name, await send(name, content)]))
    assert.deepEqual(Object.fromEntries(outcomes), expected)
    await waitForProftpd(content, String(ProFTPD))
  }
  const accepted = Object.fromEntries(Object.keys(programs).map((name) => [name, 'accepted']))
  /** Replies to content that is refused for good. */
  const refused = {
    Exim: '550',
    'Postfix with clamav-milter': '550',
    amavis: 'discarded',
    rspamd: 'reject',
    ProFTPD: '550',
    nginx: '403',
  }
  /** Replies of the table in the document: the sender tries again, except to programs whose recipe has a FOUND instead. */
  const failed = { ...refused, Exim: '451', 'Postfix with clamav-milter': '451', amavis: '451', nginx: '503' }

  test('accept what is clean, also if it is large', async () => {
    await assertOutcomes(Buffer.from('nothing to see'), accepted)
    const large = randomBytes(3_000_000)
    assert.equal(await send('nginx', large), 'accepted')
    assert.ok((stored.at(-1) ?? 0) > large.length, 'the application got the whole upload')
    await waitForProftpd(large, 'accepted')
  })

  test('refuse the test virus, and what cannot be scanned', async () => {
    const before = stored.length
    for (const content of [eicar, newEncryptedDocx()]) await assertOutcomes(content, refused)
    assert.equal(stored.length, before)
  })

  test('accept nothing while the listener cannot scan', async () => {
    await suspend(listeners)
    // rspamd accepts mail after an ERROR, and ProFTPD keeps the file, so their recipes let Assay reply FOUND.
    await assertOutcomes(Buffer.from('nothing to see here'), failed)
  })

  test('accept nothing while the service is stopped', async () => {
    const before = stored.length
    await listeners.stop()
    await assertOutcomes(Buffer.from('nothing to see either'), { ...failed, rspamd: 'soft reject' })
    assert.equal(stored.length, before)
    assert.equal(mailbox.mails.length, 1, 'only the first mail was delivered')
  })
})

describe('the script for Matrix Content Scanner and Seafile', { skip: isSkipped }, () => {
  const document = 'docs/platforms.md'
  const [script] = readCodeBlocks(document).filter(getTaker(document, import.meta.filename))
  const cli = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

  test('exits with 0 for clean content only', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'assay-script-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const service = getSharedService()
    const { api_key: key } = await service.createAccount()
    const scan = (content: Buffer | string, url = service.url) => {
      const text = script?.text.replace('https://scan.example.com', url).replace('/etc/assay', dir) ?? ''
      writeFileSync(join(dir, 'script'), text, { mode: 0o755 })
      writeFileSync(join(dir, 'content'), content)
      const env = { ...process.env, HOME: dir, PATH: `${dir}:${process.env.PATH}` }
      return spawnSync(join(dir, 'script'), [join(dir, 'content')], { env }).status
    }
    writeFileSync(join(dir, 'scan-key'), `${key}\n`)
    writeFileSync(join(dir, 'assay-scan'), `#!/bin/sh\nexec ${process.execPath} ${cli} "$@"\n`, { mode: 0o755 })
    assert.equal(scan('nothing to see'), 0)
    assert.equal(scan(eicar), 1)
    assert.equal(scan(newEncryptedDocx()), 2)
    assert.equal(scan('nothing to see', 'http://127.0.0.1:9'), 2)
  })
})

/** Makes every scan of the service fail. */
async function suspend(service: Listeners) {
  const [account] = (await service.operate('accounts', 'list')) as { id: string }[]
  await service.operate('accounts', 'suspend', account?.id ?? '')
}
