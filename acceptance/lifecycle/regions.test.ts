import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { DownloadCredential } from '@assay/contract/admin'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { type Admin, makeAdmin } from '../support/console.ts'
import { toSteps } from '../support/document-commands.ts'
import { findException } from '../support/document-exceptions.ts'
import { getTaker } from '../support/document-runners.ts'
import { assertProblem } from '../support/problems.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested } from '../support/scanning.ts'
import { makeOperate, type Service, startService } from '../support/start-service.ts'
import { makeCaller, toResult } from '../support/submitting.ts'
import { openDatabaseProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

type Created = { id: string; api_key: string }
type Key = { id: string; account_id: string }

const skip = alreadyTested
const repository = fileURLToPath(new URL('../../', import.meta.url))
const sameKey = { ASSAY_MASTER_KEY: 'a'.repeat(64) }
const adminToken = 'token-of-the-operator-of-the-satellite'
let databases: Awaited<ReturnType<typeof openTestPostgres>>[] = []
let home: Service
let satellite: Service
/** Account whose key is not used, so that only the start of the satellite opens its balance there. */
let idle: Created
/** The connection from the satellite to the home region. */
let network: Awaited<ReturnType<typeof openDatabaseProxy>>

/** Two deployments that share nothing but what the second follows of the first, set up as docs/regions.md tells. */
before(async () => {
  if (skip) return
  databases = await Promise.all([
    openTestPostgres(['wal_level=logical']),
    openTestPostgres(['wal_receiver_timeout=20s']),
  ])
  const [first, second] = databases.map(({ adminUrl }) => adminUrl) as [string, string]
  network = await openDatabaseProxy(first)
  home = await startService({
    ...sameKey,
    ASSAY_DATABASE_URL: first,
    ASSAY_REGION: 'eu',
    ASSAY_ADMIN_TOKEN: adminToken,
    ASSAY_NSFW_PROFILE: 'off',
  })
  const [publish = '', follow = ''] = readCommands()
    .map((commands) => commands.replace('postgres://assay:secret@db.us-east.internal/assay', second))
    .map((commands) =>
      commands.replace('postgres://replica:secret@db.eu.internal/assay?sslmode=verify-full', network.url),
    )
  await type(publish, { ASSAY_DATABASE_URL: first })
  await checkGrants(network.url, second)
  const other = { ASSAY_MASTER_KEY: 'b'.repeat(64) }
  assert.match(await failToFollow(network.url, second, other), /ASSAY_MASTER_KEY is another key/)
  const exported = await type(`${follow}\nenv`, sameKey)
  assert.match(exported, /^ASSAY_REGION=us-east$/m)
  const settings = { ...sameKey, ASSAY_DATABASE_URL: second, ASSAY_REGION: 'us-east' }
  idle = await createAccount(1)
  const listKeys = async () => (await makeOperate(settings)('keys', 'list')) as Key[]
  await waitUntil('the account to arrive', async () => (await listKeys()).some((key) => key.account_id === idle.id))
  satellite = await startService({ ...settings, ASSAY_ADMIN_TOKEN: adminToken, ASSAY_NSFW_PROFILE: 'off' })
})
after(async () => {
  await home?.stop()
  await satellite?.stop()
  await network?.close()
  await Promise.all(databases.map(({ close }) => close()))
})

/** The roles of `url` are no superusers: following by them is refused, with the statements that would help. */
async function checkGrants(first: string, second: string) {
  const [poorFirst, poorSecond] = databases.map(({ url }) => url) as [string, string]
  const here = await failToFollow(first, poorSecond, sameKey)
  assert.match(
    here,
    /database of this region lacks rights.*\n\s+(alter role tester superuser|grant pg_create_subscription to tester);/,
  )
  const atHome = await failToFollow(poorFirst, second, sameKey)
  assert.match(atHome, /database of the home region lacks rights.*\n\s+alter role tester replication;\n/)
  assert.match(atHome, /grant select on plans, accounts, api_keys, download_credentials, master_key to tester;/)
}

/** Commands that run in the home region, and those that run in the other region. */
function readCommands(): string[] {
  const document = 'docs/regions.md'
  const blocks = readCodeBlocks(document).filter(getTaker(document, import.meta.filename))
  return blocks.map((block) =>
    toSteps(block)
      .map(({ command }) => command)
      .filter((command) => findException(document, command) === undefined)
      .join('\n'),
  )
}
const type = async (commands: string, settings: NodeJS.ProcessEnv) =>
  (await promisify(execFile)('sh', ['-ec', commands], { env: { ...process.env, ...settings }, cwd: repository })).stdout

/**
 * Runs the command of the document with other databases or another key, and returns what it says when it fails. Typed
 * as in the document, through npm and from the sources, it takes several times the processor time.
 */
async function failToFollow(homeUrl: string, ownUrl: string, settings: NodeJS.ProcessEnv): Promise<string> {
  const env = { ...settings, ASSAY_REGION: 'us-east', ASSAY_DATABASE_URL: ownUrl }
  const { code, err } = await runProgram(env, 'regions', 'follow', homeUrl)
  assert.notEqual(code, 0)
  return err
}

const createAccount = async (credits: number) =>
  (await home.operate('accounts', 'create', '--name', 'everywhere', '--credits', String(credits))) as Created
const ping = async ({ url }: Service, key: string) =>
  (await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': key } })).status

test('a key of the home region is good in both, and what is scanned stays where it was scanned', { skip }, async () => {
  const there = makeCaller(satellite.url, home.apiKey)
  const { id } = toResult(await there.sendFile('malware', 'scan', 'harmless'), 201)
  assert.equal(toResult(await there.fetchResult('malware', id), 200).id, id)
  const here = makeCaller(home.url, home.apiKey)
  assert.equal((await here.fetchResult('malware', id)).status, 422)
  assert.equal(await there.readSpent(), 1)
  assert.equal(await here.readSpent(), 0, 'each region has credits of its own')
})

test('an account that is made at home works in the other region, with all of its credits', { skip }, async () => {
  const { api_key } = await createAccount(3)
  await waitUntil('the key to arrive', async () => (await ping(satellite, api_key)) === 200)
  const caller = makeCaller(satellite.url, api_key)
  for (let n = 0; n < 3; n++) toResult(await caller.sendFile('malware', 'scan', `harmless ${n}`), 201)
  assert.equal((await caller.sendFile('malware', 'scan', 'one too many')).status, 403)
  assert.equal(await makeCaller(home.url, api_key).readSpent(), 0)
})

test('a download credential that is stored at home opens in the other region', { skip }, async () => {
  const [here, there] = [home, satellite].map(({ url }) => makeAdmin(url, adminToken)) as [Admin, Admin]
  const path = `/operator/accounts/${idle.id}/downloads`
  const body = { host: 'files.example.com', headers: [{ name: 'Cookie', value: 'abc' }] }
  await here.ask(here.token, 'POST', path, body)
  await waitUntil('the credential to arrive', async () => {
    const { status, text } = await there.send(there.token, 'GET', path)
    return status === 200 && text !== '[]'
  })
  const [credential] = await there.ask<DownloadCredential[]>(there.token, 'GET', path)
  assert.deepEqual(credential?.values, [{ name: 'cookie', fingerprint: 'ba7816bf' }])
  assert.equal((await there.send(there.token, 'DELETE', `${path}/${credential?.id}`)).status, 409)
})

test('a key that is revoked at home is refused in the other region within seconds', { skip }, async () => {
  const { id: account, api_key } = await createAccount(1)
  await waitUntil('the key to arrive', async () => (await ping(satellite, api_key)) === 200)
  const keys = (await home.operate('keys', 'list')) as Key[]
  const key = keys.find((one) => one.account_id === account)
  assert(key !== undefined)
  await home.operate('keys', 'revoke', key.id)
  await waitUntil('the key to be refused', async () => (await ping(satellite, api_key)) === 401)
})

test('accounts and keys are made at home alone, and the console says so like the command line', { skip }, async () => {
  await assert.rejects(satellite.operate('accounts', 'create', '--name', 'here'), /belong to the home region/)
  const admin = makeAdmin(satellite.url, adminToken)
  const changes = [
    ['POST', '/operator/accounts', { name: 'here', plan: 'unlimited' }],
    ['PUT', '/operator/plans/here', { credits_per_period: 5, rate: '10/1m' }],
  ] as const
  for (const [method, path, body] of changes) {
    const answer = await admin.send(admin.token, method, path, { body })
    await assertProblem(answer, { status: 409, kind: 'conflict' }, path)
    assert.match(answer.text, /belong to the home region. Change them there/)
  }
  const shown = (await satellite.operate('regions', 'show')) as { role: string }
  assert.equal(shown.role, 'satellite')
  const seen = (await home.operate('regions', 'show')) as {
    role: string
    followers: { slot: string; active: boolean }[]
  }
  assert.deepEqual(
    [seen.role, seen.followers.map(({ slot, active }) => [slot, active])],
    ['home', [['assay_us_east', true]]],
  )
})

test('a region that is cut off says so, and since when, until it is connected again', { skip }, async () => {
  type Shown = { home: { connected: boolean; last_heard_at: string } }
  const show = async () => ((await satellite.operate('regions', 'show')) as Shown).home
  const readReadiness = async () => {
    const answer = await fetch(`${satellite.url}/readyz`)
    const { reasons, checks } = (await answer.json()) as { reasons: string[]; checks: Record<string, string> }
    const [, since] = /home region was last heard at (\S+):/.exec(reasons.join(' ')) ?? []
    return { status: answer.status, since, check: checks['home region'] }
  }
  const readMetrics = async () => {
    const text = await (await fetch(`http://127.0.0.1:${satellite.metricsPort}/metrics`)).text()
    const read = (name: string) => Number(new RegExp(`^${name}\\{.*\\} (\\S+)$`, 'm').exec(text)?.[1])
    return { connected: read('assay_home_connected'), heard: read('assay_home_heard_timestamp_seconds') }
  }
  assert.deepEqual(await readReadiness(), { status: 200, since: undefined, check: 'ok' })
  assert.equal((await readMetrics()).connected, 1)
  assert.equal((await show()).connected, true)

  network.setMode('hold')
  await waitUntil('the region to notice the silence', async () => (await readReadiness()).since !== undefined)
  const { since } = await readReadiness()
  network.setMode('cut')
  await waitUntil('PostgreSQL to notice as well', async () => network.countConnections() === 0)
  const { since: still = '', ...cut } = await readReadiness()
  assert.equal(still, since)
  assert.deepEqual(cut, { status: 200, check: 'fault' })
  assert.equal(await ping(satellite, home.apiKey), 200, 'requests are answered all the same')
  assert.deepEqual(await readMetrics(), { connected: 0, heard: Date.parse(still) / 1000 })
  assert.deepEqual(await show(), { connected: false, last_heard_at: still })

  network.setMode('pass')
  await waitUntil('the region to be connected again', async () => (await readReadiness()).check === 'ok')
  const { api_key } = await createAccount(1)
  await waitUntil('the key to arrive', async () => (await ping(satellite, api_key)) === 200)
  const { connected, last_heard_at } = await show()
  assert.ok(connected && last_heard_at > still)
})

test('a region that leaves keeps its accounts and makes its own from then on', { skip }, async () => {
  await satellite.operate('regions', 'leave', databases[0]?.adminUrl ?? '')
  assert.equal(await ping(satellite, home.apiKey), 200)
  const { api_key } = (await satellite.operate('accounts', 'create', '--name', 'here')) as Created
  assert.equal(await ping(satellite, api_key), 200)
  assert.equal(await ping(home, api_key), 401)
  const seen = (await home.operate('regions', 'show')) as { followers: unknown[] }
  assert.deepEqual(seen.followers, [], 'nothing is kept at home for one that left')
})
