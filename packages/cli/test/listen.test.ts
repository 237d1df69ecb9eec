import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newClient, verifyWebhook } from '@assay/client'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult, openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, openFakeCli, runCli, startCli } from './run-cli.ts'

const service = getSharedService()
const waitMs = 60_000
/** The service cannot reach it, and lists the webhooks all the same. */
const callbackUrl = 'https://hook.example/scans'

const newFake = (id: string) => ({
  id,
  scan_id: id,
  callback_url: callbackUrl,
  created_at: '2026-11-15T12:17:54.935Z',
  body: JSON.stringify({ ...newResult(), content_name: `${id}\u202egpj.exe` }),
  headers: {},
})

test('webhooks of the account are shown and forwarded with valid signatures, those of others and of test scans are not', async (t) => {
  const account = await service.createAccount()
  const other = await service.createAccount()
  const testKey = (await service.operate('keys', 'create', '--account', account.id, '--name', 'ci', '--test')) as {
    api_key: string
  }
  const receiver = await openFakeServer(t, () => ({ status: 204 }))
  const cwd = openDir(t)
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: account.api_key })
  const listening = startCli(['listen', '--json', '--forward-to', `${receiver.url}/hook`], { cwd, env })
  t.after(() => listening.child.kill('SIGKILL'))
  await waitUntil('the command to listen', () => listening.err().includes('Listening for webhooks'), waitMs)
  const submit = (apiKey: string, fileName: string) =>
    newClient({ apiKey, baseUrl: service.url }).malware.submitFile(Buffer.from(fileName), { fileName, callbackUrl })
  await submit(other.api_key, 'of-another.txt')
  await submit(testKey.api_key, 'of-a-test.txt')
  await submit(account.api_key, 'first.txt')
  const { id } = await submit(account.api_key, 'second.txt')
  await waitUntil('two webhooks', () => listening.out().split('\n').length === 3, waitMs)
  listening.child.kill('SIGINT')
  const { code, out } = await listening.ended
  assert.equal(code, 0)
  const lines = out.trim().split('\n')
  const shown = lines.map((line) => JSON.parse(line))
  assert.deepEqual(shown.map(({ result }) => result.content_name).sort(), ['first.txt', 'second.txt'])
  assert.ok(shown.every((each) => each.forwarded.status === 204 && each.callback_url === callbackUrl))
  assert.ok(shown.some(({ result }) => result.id === id))
  assert.equal(receiver.requests.length, 2)
  for (const { path, method, body, headers } of receiver.requests) {
    assert.deepEqual([method, path, headers['content-type']], ['POST', '/hook', 'application/json'])
    for (const accept of ['any', 'standard'] as const)
      assert.equal((await verifyWebhook(body, headers, account.webhook_secret, { accept })).status, 'clean')
    const onlyFirst = { 'x-api-signature': headers['x-api-signature'] }
    assert.equal((await verifyWebhook(body, onlyFirst, account.webhook_secret)).scan_type, 'malware')
  }
})

test('an outage is told once, without a gap, and names cannot control the terminal', async (t) => {
  const answers = [
    { json: { until: 'a', deliveries: [] } },
    { status: 503 },
    { status: 503 },
    { status: 503 },
    { status: 503 },
    { json: { until: 'b', deliveries: [newFake('one')] } },
  ]
  const { fake, start } = await openFakeCli(t, ({ count }) => answers[count] ?? 'silence')
  const listening = start(['listen'])
  t.after(() => listening.child.kill('SIGKILL'))
  await waitUntil('the webhook', () => listening.out().endsWith('\n'), waitMs)
  assert.equal(listening.out(), `12:17:54 one\\u{202e}gpj.exe: OK (for ${callbackUrl})\n`)
  assert.match(
    listening.err(),
    /^assay-scan: Listening.*\nassay-scan: .*Retrying until .*\nassay-scan: The service has recovered\.\n$/,
  )
  await waitUntil('the next request', () => fake.requests.length === 7, waitMs)
  const queries = fake.requests.map(({ path }) => new URL(path, 'http://service').searchParams.get('since'))
  assert.deepEqual(queries, [null, 'a', 'a', 'a', 'a', 'a', 'b'])
  listening.child.kill('SIGINT')
  assert.equal((await listening.ended).code, 0)
})

test('a receiver that is not there, or refuses, is told on the line of the webhook', async (t) => {
  const receiver = await openFakeServer(t, ({ count }) => (count === 0 ? { status: 500 } : 'reset'))
  const { start } = await openFakeCli(t, ({ count }) =>
    count === 0
      ? { json: { until: 'a', deliveries: [] } }
      : count === 1
        ? { json: { until: 'b', deliveries: [newFake('one'), newFake('two')] } }
        : 'silence',
  )
  const listening = start(['listen', '--forward-to', receiver.url])
  t.after(() => listening.child.kill('SIGKILL'))
  await waitUntil('both webhooks', () => listening.out().split('\n').length === 3, waitMs)
  assert.match(listening.out(), /: OK, 500 in \d+ ms\n.*: OK, not forwarded: .*\n$/)
})

test('mistakes end the command with a sentence', async (t) => {
  const cwd = openDir(t)
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: 'assay_wrong' })
  const wrongKey = await runCli(['listen'], { cwd, env })
  assert.deepEqual([wrongKey.code, wrongKey.out], [2, ''])
  assert.match(wrongKey.err, /does not accept this API key/)
  for (const [args, message] of [
    [['--forward-to', 'localhost:3000'], /--forward-to must be a URL such as/],
    [['inbox'], /listen takes no arguments/],
  ] as const) {
    const { code, err } = await runCli(['listen', ...args], { cwd, env })
    assert.equal(code, 2)
    assert.match(err, message)
  }
})

test('the list of webhooks rejects a time that is none', async () => {
  const { api_key: apiKey } = await service.createAccount()
  for (const since of ['yesterday', '2026-13-41T00:00:00Z', '2026-02-30T00:00:00Z', '0000-01-01T00:00:00Z', '']) {
    const query = new URLSearchParams({ since })
    const answer = await fetch(`${service.url}/webhooks/deliveries?${query}`, { headers: { 'x-api-key': apiKey } })
    assert.equal(answer.status, 422, since)
    assert.match(await answer.text(), /since must be a time/)
  }
})
