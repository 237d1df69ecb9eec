import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { AccountView, ListEntry, Operator, Status } from '@assay/contract/admin'
import { eicar, newZip } from '../support/archives.ts'
import { newEmail, openAccount, type Visitor } from '../support/console.ts'
import { sendTo } from '../support/http.ts'
import { assertProblem } from '../support/problems.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested, lacksClamAv, toVerdict, uploadTo } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
const { admin, url, operate } = service
const lacking = await lacksClamAv(url)
const conflict = { status: 409, kind: 'conflict' as const }

type AuditRow = { id: string; actor: string; action: string; target: string | null; detail: string | null }

describe('an operator', { skip: lacking }, () => {
  let operator: Visitor
  const email = newEmail('operator')
  before(async () => {
    const { path } = (await operate('operators', 'invite')) as { path: string }
    operator = await admin.join(path, email)
  })
  const ask = <T>(method: string, path: string, body?: unknown) => admin.ask<T>(operator, method, path, body)
  const listAudit = async (query = '') => (await ask<{ items: AuditRow[] }>('GET', `/operator/audit${query}`)).items

  test('lists, suspends and removes operators, and not themselves', async () => {
    const other = newEmail('other-operator')
    const { path } = (await operate('operators', 'invite')) as { path: string }
    const visitor = await admin.join(path, other)
    const list = async () => ask<Operator[]>('GET', '/operator/operators')
    const findOther = async () => (await list()).find((one) => one.email === other)
    const self = (await list()).find((one) => one.email === email)
    const { id = '', suspended_at } = (await findOther()) ?? {}
    assert.equal(suspended_at, null)
    for (const [method, route, body] of [
      ['POST', `/operator/operators/${self?.id}/suspend`, { suspended: true }],
      ['DELETE', `/operator/operators/${self?.id}`, undefined],
    ] as const) {
      await assertProblem(await admin.send(operator, method, route, body === undefined ? {} : { body }), conflict)
    }

    await ask('POST', `/operator/operators/${id}/suspend`, { suspended: true })
    assert((await findOther())?.suspended_at)
    assert.equal((await admin.send(visitor, 'GET', '/session')).status, 401)
    await assertProblem(await admin.signIn(other), { status: 403, kind: 'forbidden' })
    // A new password does not end the suspension.
    const reset = (await operate('operators', 'reset', other)) as { path: string }
    await assertProblem(await admin.accept(reset.path), { status: 403, kind: 'forbidden' })
    await operate('operators', 'resume', other.toUpperCase())
    assert.equal((await admin.signIn(other)).status, 200)

    const listed = (await operate('operators', 'list')) as { email: string; suspended_at: string | null }[]
    assert.equal(listed.find((one) => one.email === other)?.suspended_at, null)
    await ask('DELETE', `/operator/operators/${id}`)
    assert.equal(await findOther(), undefined)
    assert.equal((await admin.signIn(other)).status, 401)
    const { code, err } = await runProgram(service.settings, 'operators', 'remove', other)
    assert.equal(code, 1)
    assert.match(err, /There is no operator with the address/)
    const actions = (await listAudit('?action=operator.')).filter(({ target }) => target === other)
    assert.deepEqual(
      actions.map(({ action }) => action),
      ['operator.remove', 'operator.resume', 'operator.suspend'],
    )
  })

  test('grants credits, which the account has immediately and the ledger records', async () => {
    const { account, api_key } = await openAccount(admin, { plan: 'free', credits: 0 })
    const scan = () => uploadTo(url, api_key, randomUUID())
    assert.equal((await scan()).status, 403)
    const granted = await ask<AccountView>('POST', `/operator/accounts/${account.id}/credits`, {
      amount: 2,
      note: 'sorry',
    })
    assert.deepEqual([granted.credit_limit, granted.credit_remaining], [2, 2])
    assert.deepEqual([(await scan()).status, (await scan()).status, (await scan()).status], [201, 201, 403])
    type Entry = { kind: string; amount: number; balance: number; note: string | null }
    const ledger = await ask<Entry[]>('GET', `/operator/accounts/${account.id}/ledger`)
    assert.deepEqual(
      ledger.slice(0, 3).map(({ kind, amount, balance, note }) => [kind, amount, balance, note]),
      [
        ['debit', -1, 0, null],
        ['debit', -1, 1, null],
        ['grant', 2, 2, 'sorry'],
      ],
    )
    const missing = await admin.send(operator, 'POST', `/operator/accounts/${randomUUID()}/credits`, {
      body: { amount: 1, note: 'to nobody' },
    })
    assert.equal(missing.status, 404)
  })

  test('suspends, reactivates and changes an account with immediate effect', async () => {
    const { account, api_key } = await openAccount(admin)
    const me = async () =>
      (await sendTo(url, { method: 'GET', path: '/v1/me', headers: { 'x-api-key': api_key } })).status
    const change = (body: object) => ask<AccountView>('PATCH', `/operator/accounts/${account.id}`, body)
    assert.equal(await me(), 200)
    assert((await change({ suspended: true })).suspended_at)
    assert.equal(await me(), 401)
    assert.equal((await change({ suspended: false })).suspended_at, null)
    assert.equal(await me(), 200)
    const plan = `plan-${randomUUID()}`
    await ask('PUT', `/operator/plans/${plan}`, { credits_per_period: 7, rate: '5/1m' })
    const changed = await change({ plan, name: '  Renamed ' })
    assert.deepEqual(
      [changed.plan, changed.credits_per_period, changed.rate, changed.name],
      [plan, 7, '5/1m', 'Renamed'],
    )
    await assertProblem(await admin.send(operator, 'DELETE', `/operator/plans/${plan}`), conflict)
    await change({ plan: 'free' })
    assert.equal((await admin.send(operator, 'DELETE', `/operator/plans/${plan}`)).status, 204)
    // Fields that the form does not have are ignored.
    const other = await change({ download_hosts: ['evil.example'], downloadHosts: ['evil.example'], id: randomUUID() })
    assert.deepEqual([other.id, other.download_hosts], [account.id, account.download_hosts])
  })

  test('allows and blocks by hash, with effect on the next scan', async () => {
    const { api_key } = await admin.createAccount()
    const scan = async (content: Buffer) => toVerdict(await uploadTo(url, api_key, content))
    const add = (list: string, content: Buffer, more: object = {}) =>
      ask<ListEntry>('POST', '/operator/lists', {
        list,
        matches: 'sha256',
        value: createHash('sha256').update(content).digest('hex').toUpperCase(),
        reason: 'we made it ourselves',
        ...more,
      })
    const falsePositive = newZip([{ name: randomUUID(), data: eicar }])
    assert.equal((await scan(falsePositive)).status, 'threat')
    const entry = await add('allow', falsePositive)
    assert.equal(entry.created_by, email)
    const allowed = await scan(falsePositive)
    assert.deepEqual([allowed.status, allowed.metadata.listed], ['clean', 'we made it ourselves'])
    assert.equal((await ask<ListEntry[]>('GET', '/operator/lists')).filter(({ id }) => id === entry.id).length, 1)
    await ask('DELETE', `/operator/lists/${entry.id}`)
    assert.equal((await scan(falsePositive)).status, 'threat')

    const harmless = Buffer.from(randomUUID())
    assert.equal((await scan(harmless)).status, 'clean')
    const soon = new Date(Date.now() + 3000).toISOString()
    await add('block', harmless, { expires_at: soon })
    assert.deepEqual((await scan(harmless)).signals, ['Virus:Blocked'])
    await waitUntil('the entry to expire', async () => (await scan(harmless)).status === 'clean')
  })

  test('uploads a rule, which is tested first, and removes it', { skip: alreadyTested }, async () => {
    const mark = randomUUID()
    const name = `own-${mark}.yar`
    const upload = (file: string, content: string) =>
      admin.send(operator, 'PUT', `/operator/signatures/${file}`, {
        body: content,
        headers: { 'content-type': 'application/octet-stream' },
      })
    const broken = await upload(name, 'rule broken {')
    await assertProblem(broken, conflict)
    assert(!broken.text.includes(tmpdir()), broken.text)
    for (const file of ['x.exe', '..%2f..%2fetc%2fpasswd', 'a%2f..', 'x', '%20', '.yar', 'a'.repeat(300)]) {
      const { status, text } = await upload(file, 'rule a { condition: false }')
      assert([404, 409].includes(status), `${file}: ${text}`)
    }
    const placed = await upload(name, `rule Own { strings: $a = "${mark}" condition: $a }`)
    assert.equal(placed.status, 200, placed.text)
    const { api_key } = await admin.createAccount()
    const scan = async () => toVerdict(await uploadTo(url, api_key, `it has ${mark} inside`)).status
    await waitUntil('the rule to be in use', async () => (await scan()) === 'threat')
    type Files = { files: { path: string; is_own: boolean }[]; models: { name: string }[] }
    const listed = await ask<Files>('GET', '/operator/signatures')
    assert(listed.files.some(({ path, is_own }) => path.endsWith(name) && is_own))
    assert(listed.models.length > 0 && listed.models.every((model) => !/YARA|ClamAV/.test(model.name)))
    assert.equal((await admin.send(operator, 'DELETE', `/operator/signatures/${name}`)).status, 204)
    assert.equal((await admin.send(operator, 'DELETE', `/operator/signatures/${name}`)).status, 404)
    await waitUntil('the rule to be gone', async () => (await scan()) === 'clean')
    const update = await ask<{ state: string }>('POST', '/operator/signatures/update')
    assert.equal(update.state, 'unavailable')
  })

  test('sees the status of the service and of its engines', async () => {
    const status = await ask<Status>('GET', '/operator/status')
    assert.notEqual(status.status, 'down')
    const clamAv = status.engines.find(({ name }) => name === 'ClamAV')
    assert(clamAv?.is_up && clamAv.kind === 'malware' && Number(clamAv.signatures) > 0)
    assert(status.engines.some(({ kind }) => kind === 'image'))
    assert(status.database.bytes > 0 && status.disk.data_bytes_total > status.disk.data_bytes_free)
    const selfTest = await ask<{ ok: boolean; checks: { name: string; ok: boolean }[] }>('POST', '/operator/self-test')
    assert.equal(selfTest.ok, true, JSON.stringify(selfTest))
    assert.equal(selfTest.checks.length, 3)
  })

  test('sees the settings and their origin, without secrets', async () => {
    type System = { settings: { name: string; value: string | null; origin: string; secret: boolean }[] }
    const answer = await admin.send(operator, 'GET', '/operator/system')
    const { settings } = JSON.parse(answer.text) as System
    const token = settings.find(({ name }) => name === 'ASSAY_ADMIN_TOKEN')
    assert.deepEqual([token?.secret, token?.value], [true, '(hidden)'])
    assert(!answer.text.includes(service.settings.ASSAY_ADMIN_TOKEN ?? 'no token'))
    for (const { name, value, secret } of settings) if (secret) assert([null, '(hidden)'].includes(value), name)
    const database = settings.find(({ name }) => name === 'ASSAY_DATABASE_URL')
    assert.equal(database?.secret, true)
    assert.equal(settings.find(({ name }) => name === 'ASSAY_PORT')?.value, '0')
  })

  test('writes a backup that can be restored', { skip: alreadyTested }, async () => {
    const done = await ask<{ directory: string; rows: number; files: number }>('POST', '/operator/backup')
    assert(done.rows > 0 && existsSync(done.directory) && readdirSync(done.directory).length > 1)
    const elsewhere = mkdtempSync(join(tmpdir(), 'assay-restored-'))
    // The console leaves the master key out of backups.
    const key = readFileSync(join(service.settings.ASSAY_DATA_DIR ?? '', 'master.key'), 'utf8').trim()
    const restoring = { ASSAY_DATA_DIR: join(elsewhere, 'data'), ASSAY_MASTER_KEY: key }
    try {
      const restored = await runProgram(restoring, 'restore', done.directory)
      assert.equal(restored.code, 0, restored.err)
    } finally {
      rmSync(elsewhere, { recursive: true, force: true })
      rmSync(done.directory, { recursive: true, force: true })
    }
  })

  test('filters the audit log by person, action and day, and exports it', async () => {
    const listOf = (actor: string) => listAudit(`?limit=100&actor=${encodeURIComponent(actor)}`)
    const own = await listOf(email.toUpperCase().slice(0, -3))
    assert.deepEqual([...new Set(own.map(({ actor }) => actor))], [email])
    assert.deepEqual(await listOf('%'), [])
    assert.deepEqual(await listAudit('?from=2020-01-01&to=2020-01-02'), [])
    const today = new Date().toISOString().slice(0, 10)
    assert((await listAudit(`?from=${today}`)).length > 0)
    const exported = await admin.send(operator, 'GET', '/operator/audit?format=csv&action=account.')
    assert.match(exported.text, /^id,at,actor,action,target,account_name,detail,address\r\n\d+,\d{4}-/)
  })

  test('finds the changes in the audit log, page by page', async () => {
    const { account, owner } = await openAccount(admin, { name: 'Watched' })
    await admin.ask(owner, 'POST', '/keys', { name: 'noted' })
    await admin.ask(owner, 'POST', '/webhooks/secret/rotate')
    await ask('POST', `/operator/accounts/${account.id}/credits`, { amount: 5, note: 'seen' })
    const rows = await listAudit('?limit=100')
    const find = (action: string) =>
      rows.find((row) => row.action === action && JSON.stringify(row).includes('Watched'))
    assert.equal(find('key.create')?.target, 'noted')
    assert(find('webhook-secret.rotate') && find('account.create') && find('member.create'))
    assert.deepEqual([find('credits.grant')?.actor, find('credits.grant')?.detail], [email, '5: seen'])
    assert.equal(find('account.create')?.actor, 'operator token')
    assert(!JSON.stringify(rows).includes('whsec_') && !JSON.stringify(rows).includes('argon2'))

    const first = await ask<{ items: AuditRow[]; next: string }>('GET', '/operator/audit?limit=2')
    const second = await listAudit(`?limit=2&cursor=${first.next}`)
    assert(BigInt(second[0]?.id ?? 0) < BigInt(first.items[1]?.id ?? 0))
    const keys = await listAudit('?action=key.&limit=100')
    assert(keys.length > 0 && keys.every(({ action }) => action.startsWith('key.')))
  })

  describe('and failing receivers', () => {
    const host = '127.9.9.77'
    let receiver: Receiver
    let isUp = false
    before(async () => {
      receiver = await openReceiver(() => ({ status: isUp ? 200 : 410 }), { host })
    })
    after(() => receiver.close())

    test('are listed by host, paused, and replayed', async () => {
      const { api_key } = await admin.createAccount()
      const caller = makeCaller(url, api_key)
      const submit = () => caller.sendFile('malware', 'submit', randomUUID(), { callback_url: `${receiver.url}/hook` })
      toId(await submit())
      type Host = { host: string; paused: boolean; dead: number; waiting: number }
      const find = async () =>
        (await ask<Host[]>('GET', '/operator/deliveries')).find((one) => one.host.startsWith(host))
      await waitUntil('the host to fail', async () => (await find()) !== undefined)
      const { host: name = '' } = (await find()) ?? {}
      await ask('POST', '/operator/deliveries/pause', { host: name, paused: true })
      assert.equal((await find())?.paused, true)
      const before = receiver.received.length
      toId(await submit())
      await waitUntil('the second to wait', async () => Number((await find())?.waiting) > 0)
      assert.equal(receiver.received.length, before)
      isUp = true
      await ask('POST', '/operator/deliveries/pause', { host: name, paused: false })
      await waitUntil('the second to arrive', () => receiver.received.length > before)
      const { replayed } = await ask<{ replayed: number }>('POST', '/operator/deliveries/replay', {
        host: name,
        since: new Date(Date.now() - 3_600_000).toISOString(),
      })
      assert.equal(replayed, 1)
      await waitUntil('the first to arrive', () => receiver.received.length > before + 1)
      const unknown = await admin.send(operator, 'POST', '/operator/deliveries/pause', {
        body: { host: 'nobody.example', paused: true },
      })
      assert.equal(unknown.status, 404)
    })
  })
})
