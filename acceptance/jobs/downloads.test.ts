import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { DownloadCredential } from '@assay/contract/admin'
import { eicar, eicarSignal } from '../support/archives.ts'
import { makeAdmin, newEmail, openAccount } from '../support/console.ts'
import { openBefore } from '../support/open-before.ts'
import { openOrigin, world } from '../support/origin.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { startService, withoutImages } from '../support/start-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)
const adminToken = 'd'.repeat(40)
/** Long random values, which can stand nowhere by chance. */
const secrets = {
  bearer: `b${randomUUID()}`,
  cookie: `c${randomUUID()}`,
  refused: `r${randomUUID()}`,
  accessKey: `AKIA${randomUUID().slice(0, 8)}`,
  secretKey: `s${randomUUID()}`,
}

describe('content that the service downloads', { skip: lacking || alreadyTested }, () => {
  const origin = openBefore(() =>
    openOrigin((request, response) => {
      const { authorization, cookie } = request.headers
      const isKnown = authorization === `Bearer ${secrets.bearer}` && cookie === `session=${secrets.cookie}`
      if (request.url === '/away') return void response.writeHead(302, { location: `${other.url}/virus` }).end()
      if (request.url === '/abandoned') return abandon(response)
      if (isKnown) response.end(eicar)
      else response.writeHead(401).end()
    }),
  )
  const other = openBefore(() =>
    openOrigin((request, response) => {
      leaked.push(...['authorization', 'cookie'].filter((name) => request.headers[name] !== undefined))
      response.end('a text that everyone may read')
    }),
  )
  const leaked: string[] = []
  let abandoned = 0
  /** Sends the beginning of a file, and counts clients that do not wait for the rest. */
  const abandon = (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 1000 }).write('x')
    response.once('close', () => {
      abandoned++
    })
  }
  const service = openBefore(() =>
    startService({
      ...withoutImages,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_OUTBOUND_PROXY: '',
      ASSAY_ADMIN_TOKEN: adminToken,
      ASSAY_LOG_LEVEL: 'debug',
    }),
  )
  const admin = openBefore(async () => makeAdmin(service.url, adminToken))
  const account = openBefore(() => openAccount(admin, { plan: 'standard' }))
  const stranger = openBefore(() => openAccount(admin))

  const headers = () => [
    { name: 'Authorization', value: ` Bearer ${secrets.bearer}\n` },
    { name: 'Cookie', value: `session=${secrets.cookie}` },
  ]

  async function scan(key: string, how: 'scan' | 'submit', url: string) {
    const caller = makeCaller(service.url, key)
    const answer = await caller.sendUrl('malware', how, url)
    const result = how === 'scan' ? toResult(answer, 201) : await caller.complete('malware', toId(answer))
    return [result.status, result.signals?.[0], result.metadata?.reason ?? result.metadata?.download_credential]
  }

  test('ends its download when the caller leaves, which is no error of the service', async () => {
    const caller = makeCaller(service.url, account.api_key)
    const before = await caller.readSpent()
    const leaving = new AbortController()
    const request = fetch(`${service.url}/v1/malware/scan/url`, {
      method: 'POST',
      headers: { 'x-api-key': account.api_key, 'content-type': 'application/json' },
      body: JSON.stringify({ file_url: `${origin.url}/abandoned` }),
      signal: leaving.signal,
    })
    await waitUntil('the download to begin', () => origin.asked.includes('/abandoned'))
    leaving.abort()
    await assert.rejects(request)
    await waitUntil('the download to end', () => abandoned === 1)
    assert.equal(await caller.readSpent(), before)
    assert.doesNotMatch(service.log(), /"level":"error"/)
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    assert.match(metrics, /^assay_internal_errors_total(\{.*\})? 0$/m)
  })

  test('is scanned with a stored credential for its account alone, in both ways, and not after a redirect to another server', async () => {
    const { owner } = account
    const missing = ['error', 'Error:DownloadFailed', 'The host answered with status 401.']
    assert.deepEqual(await scan(account.api_key, 'scan', `${origin.url}/virus`), missing)
    const added = await admin.ask<{ credential: DownloadCredential; replaced: boolean }>(owner, 'POST', '/downloads', {
      host: origin.url,
      headers: headers(),
    })
    assert.deepEqual([added.credential.target, added.replaced], [origin.url, false])
    for (const how of ['scan', 'submit'] as const) {
      assert.deepEqual(await scan(account.api_key, how, `${origin.url}/virus`), ['threat', eicarSignal, 'sent'])
      // The verdict on this content is in the cache now, and the other account still does not get at it by the URL.
      assert.deepEqual(await scan(stranger.api_key, how, `${origin.url}/virus`), missing)
      assert.deepEqual(await scan(account.api_key, how, `${origin.url}/away`), [
        'clean',
        undefined,
        'not sent after a redirect',
      ])
    }
    assert.deepEqual(leaked, [])
  })

  test('is reported with what the server said, and without the stored credential', async () => {
    const body = { host: origin.url, headers: [{ name: 'X-Token', value: secrets.refused }] }
    // An operator stores it, for another account.
    const path = `/operator/accounts/${stranger.account.id}/downloads`
    const { credential } = await admin.ask<{ credential: DownloadCredential }>(admin.token, 'POST', path, body)
    assert.deepEqual(await scan(stranger.api_key, 'scan', `${origin.url}/virus`), [
      'error',
      'Error:DownloadFailed',
      'The host answered with status 401. The stored download credential was sent.',
    ])
    assert.equal((await admin.ask<DownloadCredential[]>(admin.token, 'GET', path)).length, 1)
    await admin.ask(admin.token, 'DELETE', `${path}/${credential.id}`)
    assert.deepEqual(await admin.ask(stranger.owner, 'GET', '/downloads'), [])
  })

  test('has credentials of owners and operators: no API key, no member and no other account reaches them', async () => {
    const [credential] = await admin.ask<DownloadCredential[]>(account.owner, 'GET', '/downloads')
    const one = `/downloads/${credential?.id}`
    const asKey = { 'x-api-key': account.api_key }
    assert.equal((await admin.send(asKey, 'GET', '/downloads')).status, 401)
    assert.equal((await admin.send(asKey, 'DELETE', one)).status, 401)
    assert.equal((await admin.send(stranger.owner, 'DELETE', one)).status, 404)
    const email = newEmail('member')
    const invited = await admin.ask<{ url: string }>(account.owner, 'POST', '/members', { role: 'member', email })
    const member = await admin.join(invited.url, email)
    for (const [method, path] of [
      ['GET', '/downloads'],
      ['POST', '/downloads'],
      ['DELETE', one],
    ] as const) {
      assert.equal((await admin.send(member, method, path, { body: method === 'POST' ? {} : undefined })).status, 403)
    }
    assert.equal((await admin.ask<DownloadCredential[]>(account.owner, 'GET', '/downloads')).length, 1)
  })

  test('has credentials whose values stand nowhere in clear: not in responses, the audit log, logs or files', async () => {
    const { owner } = account
    const key = { access_key_id: secrets.accessKey, secret_access_key: secrets.secretKey }
    const bucket = { bucket: 'data', region: 'eu-central-1', ...key }
    await admin.ask(owner, 'POST', '/downloads', bucket)
    const answers = [
      await admin.send(owner, 'GET', '/downloads'),
      await admin.send(owner, 'POST', '/downloads', { body: { ...bucket, bucket: 'Not a bucket' } }),
      await admin.send(owner, 'POST', '/downloads', {
        body: { host: 'a.example', headers: [{ name: `Cookie: ${secrets.cookie}`, value: `${secrets.bearer}\u0007` }] },
      }),
      await admin.send(owner, 'POST', '/downloads', { body: { host: secrets.cookie, headers: secrets.bearer } }),
      await admin.send(admin.token, 'GET', '/operator/audit'),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 422, 422, 422, 200],
    )
    assert.match(answers[4]?.text ?? '', /download-credential\.add/)
    await service.operate('downloads', 'list', '--account', account.account.id)
    const file = join(service.dataDir, 'key')
    const pair = 'aws_access_key_id = AKIA0\naws_secret_access_key = x\n'
    writeFileSync(file, `[default]\n${pair}aws_session_token = y\n`)
    const place = ['--account', account.account.id, '--bucket', 'other', '--region', 'eu-central-1']
    await assert.rejects(service.operate('downloads', 'add', file, ...place), /has a session token/)
    const files = listFiles(service.dataDir).map((path) => ({ path, bytes: readIfThere(path) }))
    assert.ok(
      files.some(({ bytes }) => bytes.includes(origin.url)),
      'the files of the database are among them',
    )
    for (const [name, value] of Object.entries(secrets)) {
      for (const answer of answers) assert.ok(!answer.text.includes(value), name)
      assert.ok(!service.log().includes(value), `${name} in the log`)
      for (const { path, bytes } of files) assert.ok(!bytes.includes(value), `${name} in ${path}`)
    }
  })
})

function listFiles(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
}

/** PostgreSQL removes files while it runs. */
function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
