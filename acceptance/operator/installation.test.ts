import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runProgram } from '../support/run-program.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const folder = mkdtempSync(join(tmpdir(), 'assay-installation-'))
after(() => rmSync(folder, { recursive: true }))

type Shown = { settings: { name: string; value: string | null; origin: string; secret: boolean }[]; warnings: string[] }

test('config shows every setting with its origin, and hides secrets of any origin', async () => {
  const secrets = ['hush-password', 'hush-bootstrap-key', 'hush-webhook-secret', 'hush-user', 'hush-query', 'hush-path']
  const feed = `https://hush-user:hush-user@feeds.example.com/get/hush-path-${'0'.repeat(32)}/daily.hdb?api_key=hush-query&days=3`
  const file = join(folder, 'webhook-secret')
  const toml = join(folder, 'assay.toml')
  writeFileSync(file, `${secrets[2]}\n`)
  writeFileSync(toml, `bootstrap_key = "${secrets[1]}"\nregion = "eu"\n`)
  const settings = {
    ASSAY_DATABASE_URL: `postgres://user:${secrets[0]}@127.0.0.1/assay`,
    ASSAY_BOOTSTRAP_WEBHOOK_SECRET_FILE: file,
    ASSAY_CONFIG: toml,
    ASSAY_SIGNATURE_URLS: `https://example.com/a.hdb,${feed}`,
    ASSAY_LOG_LEVEL: 'warn',
    ASSAY_PROT: '1',
  }
  const asJson = await runProgram(settings, 'config', '--json')
  const asText = await runProgram(settings, 'config')
  for (const { code, out, err } of [asJson, asText]) {
    assert.equal(code, 0)
    for (const secret of secrets) assert(!`${out}${err}`.includes(secret), secret)
    assert.match(out, /Did you mean ASSAY_PORT\?/)
  }
  const shown = JSON.parse(asJson.out) as Shown
  const find = (name: string) => {
    const { value, origin } = shown.settings.find((setting) => setting.name === name) ?? {}
    return { value, origin }
  }
  assert.deepEqual(find('ASSAY_DATABASE_URL'), { value: '(hidden)', origin: 'ASSAY_DATABASE_URL' })
  assert.deepEqual(find('ASSAY_BOOTSTRAP_KEY'), { value: '(hidden)', origin: toml })
  assert.deepEqual(find('ASSAY_BOOTSTRAP_WEBHOOK_SECRET'), {
    value: '(hidden)',
    origin: 'ASSAY_BOOTSTRAP_WEBHOOK_SECRET_FILE',
  })
  assert.deepEqual(find('ASSAY_SIGNATURE_URLS'), {
    value:
      'https://example.com/a.hdb,https://(hidden)@feeds.example.com/get/(hidden)/daily.hdb?api_key=(hidden)&days=3',
    origin: 'ASSAY_SIGNATURE_URLS',
  })
  assert.deepEqual(find('ASSAY_REGION'), { value: 'eu', origin: toml })
  assert.deepEqual(find('ASSAY_LOG_LEVEL'), { value: 'warn', origin: 'ASSAY_LOG_LEVEL' })
  assert.deepEqual(find('ASSAY_PORT'), { value: '8080', origin: 'default' })
  assert.equal(shown.warnings.length, 1)
})

test('a service with wrong settings does not start, and names every mistake', async () => {
  const settings = { ASSAY_PORT: 'x', ASSAY_REGION: 'No Region', ASSAY_DATA_DIR: folder }
  const { code, err } = await runProgram(settings, 'serve')
  assert.equal(code, 1)
  for (const name of ['ASSAY_PORT', 'ASSAY_REGION']) assert.match(err, new RegExp(`^- ${name} must be `, 'm'))
  assert.doesNotMatch(err, /^\s+at /m)
})

test('migrate has nothing to do on the database of a running service', async () => {
  assert.deepEqual(await service.operate('migrate'), { ran: [] })
})

test('doctor finds no fault in a running service, nor in its ledger', async () => {
  const { port } = new URL(service.url)
  const { code, out } = await runProgram({ ...service.settings, ASSAY_PORT: port }, 'doctor', '--json')
  const { healthy, findings } = JSON.parse(out) as {
    healthy: boolean
    findings: { check: string; ok: boolean; says: string }[]
  }
  const checks = findings.map(({ check }) => check)
  assert.deepEqual(checks, [
    'settings',
    'data directory',
    'certificate',
    'sandbox',
    'database',
    'clock',
    'accounts',
    'ledger',
    'service',
  ])
  // A service without an engine is degraded; all other checks must pass.
  for (const { check, ok, says } of findings) if (check !== 'service') assert(ok, `${check}: ${says}`)
  assert.match(findings.at(-1)?.says ?? '', new RegExp(`^${service.url} is (ready|degraded)\\.`))
  assert.equal(healthy, findings.at(-1)?.ok)
  assert.equal(code, healthy ? 0 : 1)
})

test('doctor reports faults with what to do, and exit code 1', async () => {
  const nowhere = {
    ASSAY_DATABASE_URL: 'postgres://nobody:x@127.0.0.1:1/assay',
    ASSAY_PORT: '1',
    ASSAY_METRICS_PORT: '2',
  }
  const { code, out, err } = await runProgram({ ASSAY_DATA_DIR: folder, ...nowhere }, 'doctor', '--json')
  assert.equal(code, 1)
  const { healthy, findings } = JSON.parse(out) as {
    healthy: boolean
    findings: { check: string; ok: boolean; says: string }[]
  }
  assert.equal(healthy, false)
  const faults = findings.filter(({ ok }) => !ok)
  assert.deepEqual(
    faults.map(({ check }) => check),
    ['database', 'service'],
  )
  assert.match(faults[1]?.says ?? '', /does not answer \(ECONNREFUSED\)\. Start it with: npm start\./)
  assert.doesNotMatch(err, /^\s+at /m)

  const wrong = await runProgram({ ASSAY_PORT: 'x', ASSAY_DRAIN_SECONDS: '-1' }, 'doctor', '--json')
  assert.equal(wrong.code, 1)
  assert.equal(JSON.parse(wrong.out).findings.length, 2)
})

test('health tells by its exit code whether the service is ready', async () => {
  const { port } = new URL(service.url)
  const up = await runProgram({ ...service.settings, ASSAY_PORT: port }, 'health')
  assert.match(up.out, new RegExp(`^${service.url} is (ready|degraded)\\.`))
  assert.equal(up.code, 0)

  const nowhere = { ASSAY_DATA_DIR: folder, ASSAY_PORT: '1', ASSAY_METRICS_PORT: '2' }
  const down = await runProgram(nowhere, 'health', '--wait', '0.5', '--json')
  assert.deepEqual(JSON.parse(down.out), {
    url: 'http://127.0.0.1:1',
    status: 'unavailable',
    reasons: ['The service does not answer (ECONNREFUSED).'],
  })
  assert.equal(down.code, 1)

  const typo = await runProgram(nowhere, 'health', '--wait', 'long')
  assert.match(typo.err, /--wait must be a number of seconds/)
  assert.equal(typo.code, 1)
})

test('webhooks rotate-secret creates a new secret, and the old one signs for a day more', async () => {
  const account = await service.createAccount()
  const rotate = () =>
    service.operate('webhooks', 'rotate-secret', '--account', account.id) as Promise<{
      id: string
      webhook_secret: string
      previous_until: string
    }>
  const show = () => service.operate('webhooks', 'show-secret', '--account', account.id)
  assert.deepEqual(await show(), { id: account.id, webhook_secret: account.webhook_secret })
  const first = await rotate()
  const second = await rotate()
  assert.deepEqual(await show(), { id: account.id, webhook_secret: second.webhook_secret })
  assert.equal(first.id, account.id)
  assert.equal(new Set([account.webhook_secret, first.webhook_secret, second.webhook_secret]).size, 3)
  const hours = (Date.parse(first.previous_until) - Date.now()) / 3_600_000
  assert(hours > 23.9 && hours <= 24)
})
