import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../scripts/test-s3.ts'
import { eicar, newZip } from '../support/archives.ts'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { makeAdmin } from '../support/console.ts'
import { followDocument } from '../support/follow-document.ts'
import { findFreePort } from '../support/free-port.ts'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { world } from '../support/origin.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { makeReadersDirectory, toReadersEnvironment } from '../support/readers-directory.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const dir = makeReadersDirectory()
const inDir = (name: string) => join(dir, name)
const assay = 'npm run --silent assay --'
const [port, tlsPort] = [await findFreePort(), await findFreePort()]
const lacksS3 = lacksTestS3()
const skip = alreadyTested || (await lacksClamAv(getSharedService().url)) || lacksPrograms('curl', 'openssl')
let receiver: Receiver
let postgres: Awaited<ReturnType<typeof openTestPostgres>>
let s3: TestS3 | undefined

/** For services beside the one that the document starts first: on the PostgreSQL of the operator, where it tells of that. */
const newNeighbour = (name: string): NodeJS.ProcessEnv => ({
  ASSAY_DATABASE_URL: postgres.url,
  ASSAY_DATA_DIR: inDir(name),
  ASSAY_NSFW_PROFILE: 'off',
  ASSAY_PORT: '0',
  ASSAY_BOOTSTRAP_KEY: 'key-of-the-neighbour',
  KEY: 'key-of-the-neighbour',
})

after(() => rmSync(dir, { recursive: true, force: true }))

/** Tells whether an earlier run has converted all models. */
function hasModels(): boolean {
  const models = join(repository, 'packages/server/models')
  const manifest = JSON.parse(readFileSync(join(models, 'manifest.json'), 'utf8')) as { models: { file: string }[] }
  return manifest.models.every(({ file }) => existsSync(join(models, 'built', file)))
}

const hashList = `sha256,family
4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865,Trojan.Example
53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3,Worm.Example
`

describe('an operator', { skip }, () => {
  before(async () => {
    receiver = await openReceiver((path) =>
      path === '/in' ? { status: 500, text: 'no such shop' } : { status: 200, text: 'thanks' },
    )
    postgres = await openTestPostgres()
    // The commands of README.md create a database.
    copyPreparedDatabase(inDir('data'))
    s3 = lacksS3 ? undefined : await joinTestS3()
  })
  after(async () => {
    await receiver.close()
    await postgres.close()
    await s3?.close()
  })

  followDocument({
    documents: ['operating', 'settings', 'operator-commands', 'engines', 'knowledge'].map((name) => `docs/${name}.md`),
    test: import.meta.filename,
    dir,
    env: {
      ...toReadersEnvironment(dir),
      ASSAY_PORT: String(port),
      ASSAY_OUTBOUND_ALLOW: world,
      // The pause before the second attempt is the one that there is time to wait for.
      ASSAY_SIGNATURE_HOURS: '0',
      ASSAY_SIGNATURE_MAX_AGE: 'off',
      ASSAY_WEBHOOK_RETRIES: '1s,5m',
    },
    values: () => [
      ['127.0.0.1:8080', `127.0.0.1:${port}`],
      ['"metrics_port":9080', `"metrics_port":${port + 1000}`],
      ['18443', String(tlsPort)],
      ['/var/lib/assay', inDir('data')],
      ['/opt/assay/', repository],
      ['/backups', inDir('backups')],
      ['/srv/assay', inDir('restored')],
      ['/media/stick', inDir('stick')],
      ['https://hooks.example.com', receiver.url],
      ['https://shop.example.com', receiver.url],
      ['postgres://tester:p4ss%20word@127.0.0.1:40499/assay', postgres.url],
      [
        's3://assay-content/production?endpoint=https://s3.example.com:9000&region=eu-west-1',
        s3?.toBlobsUrl(`documents-${process.pid}`) ?? '',
      ],
      [
        'ASSAY_S3_ACCESS_KEY=... ASSAY_S3_SECRET_KEY=...',
        `ASSAY_S3_ACCESS_KEY=${s3?.accessKey} ASSAY_S3_SECRET_KEY=${s3?.secretKey}`,
      ],
      ['box1', hostname()],
    ],
    before: {
      [`${assay} serve --json`]: async ({ greeting }) => {
        const link = /http\S+welcome#\S+/.exec(greeting())?.[0] ?? ''
        await makeAdmin(`http://127.0.0.1:${port}`, '').join(link, 'ada@example.com')
        return undefined
      },
      [`${assay} backup`]: () => void mkdirSync(inDir('backups')),
      [`${assay} config`]() {
        const example = readCodeBlocks('docs/settings.md').find(({ language }) => language === 'toml')
        writeFileSync(inDir('assay.toml'), example?.text ?? '')
        writeFileSync(inDir('key'), 'key-of-the-neighbour')
        return { ASSAY_PORT: '', ASSAY_REGION: 'us', ASSAY_BOOTSTRAP_KEY_FILE: inDir('key') }
      },
      'ASSAY_PORT=99999': () => {
        rmSync(inDir('assay.toml'))
        return {}
      },
      /** Two jobs: one whose webhook is taken, and one whose webhook never is. */
      [`${assay} jobs`]: async ({ find }) => {
        const caller = makeCaller(`http://127.0.0.1:${port}`, find('assay_5xhNrziKTVwqdUtbhfKoZMf39nSgThlY1TaVow'))
        // The second job follows the webhook of the first: the document lists the later one first.
        for (const path of ['/', '/in']) {
          toId(await caller.sendFile('malware', 'submit', 'harmless', { callback_url: receiver.url + path }))
          await waitUntil(`the webhook for ${path}`, () => receiver.at(path).length > 0)
        }
        await waitUntil('the second attempt', () => receiver.at('/in').length === 2)
        return undefined
      },
      [`${assay} scan invoices.zip`]: () =>
        void writeFileSync(inDir('invoices.zip'), newZip([{ name: '2026/eicar.com', data: eicar }])),
      [`${assay} scan --nsfw`]: () =>
        void copyFileSync(join(repository, 'acceptance/support/pictures/one-in-a-hundred.gif'), inDir('banner.gif')),
      [`${assay} signatures add example.ndb`]() {
        writeFileSync(inDir('example.ndb'), 'Example.Signature:0:*:6578616d706c65207369676e6174757265\n')
        writeFileSync(inDir('broken.ldb'), 'Example.Broken;Engine:51-255;0\n')
        return undefined
      },
      'cat feed.csv': () => void writeFileSync(inDir('feed.csv'), hashList),
      [`${assay} signatures import`]() {
        mkdirSync(inDir('stick/clamav'), { recursive: true })
        writeFileSync(inDir('stick/clamav/daily.ndb'), 'Example.Imported:0:*:6578616d706c65206f6620616e206f74686572\n')
        return undefined
      },
      // So that the document's own run finds them: those of other precisions are made by nobody else.
      'npm run --silent models': async () => {
        if (hasModels()) return undefined
        await promisify(execFile)('npm', ['run', 'models'], { cwd: dir, env: toReadersEnvironment(dir) })
        return undefined
      },
      'export ASSAY_BLOBS': () => newNeighbour('with-s3'),
      'ASSAY_ROLES=api': () => ({}),
      // Its own database, because its master key is its own.
      'openssl req'() {
        copyPreparedDatabase(inDir('with-tls'))
        return { ...newNeighbour('with-tls'), ASSAY_DATABASE_URL: '' }
      },
    },
    skip: { 'export ASSAY_BLOBS': lacksS3 },
  })
})
