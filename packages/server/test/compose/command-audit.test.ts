import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { runShared } from '../../../../acceptance/support/shared-commands.ts'
import { makeProgram } from '../../src/commands/program.ts'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import { makeVit, writeModel } from '../nsfw/own-model-samples.ts'
import { testMasterKeyText } from '../support/test-sealer.ts'
import { openDeliveries, type TestDeliveries } from '../webhooks/deliveries.ts'

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const url = 'https://receiver.example.com/in?token=hush'
const dir = mkdtempSync(join(tmpdir(), 'assay-command-audit-'))

/** Commands that change nothing in the database. */
const readers = [
  'serve, scan, doctor, health, config, jobs, nodes, audit verify',
  'accounts list, accounts show, keys list, plans list, credits ledger, operators list, signatures list',
  'models list, models evaluate, sources list, sources presets',
  'webhooks deliveries, webhooks show, webhooks endpoints, regions show',
  'hashes list, hashes find, receipts verify, receipts keys, downloads list',
  'service install, service uninstall',
]
  .join()
  .split(',')
  .map((name) => name.trim())

/** Commands whose entries other tests look at, because they need more than one database or another server. */
const elsewhere = [
  'restore',
  'sources update',
  'master-key rotate',
  'migrate',
  'regions publish',
  'regions follow',
  'regions leave',
]

describe('the audit log of operator commands', () => {
  let deliveries: TestDeliveries
  before(async () => {
    deliveries = await openDeliveries()
  })
  after(async () => {
    await deliveries.close()
    rmSync(dir, { recursive: true, force: true })
  })

  async function run(...args: string[]): Promise<Record<string, string>> {
    const { url: database } = deliveries.stores.database
    const settings = { ASSAY_DATABASE_URL: database, ASSAY_MASTER_KEY: testMasterKeyText, ASSAY_DATA_DIR: dir }
    const message = { args: [...args, '--json'], env: { ...process.env, ...settings } }
    const { code, out, err } = (await runShared(program, message)) ?? assert.fail('another command runs')
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return JSON.parse(out)
  }

  async function addOperator(email: string) {
    const { pool } = deliveries.stores.database
    await pool.query(
      `insert into members (id, email, name, password_hash, is_operator) values (gen_random_uuid(), $1, '', '', true)`,
      [email],
    )
  }

  /** Runs `work` while no entry can be written, as when a command dies at that moment. */
  async function withoutAuditLog(work: () => Promise<void>) {
    const { pool } = deliveries.stores.database
    await pool.query(`
      create function refuse_entry() returns trigger language plpgsql as $$ begin raise 'no entry today'; end $$;
      create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`)
    await work()
    await pool.query('drop function refuse_entry cascade')
  }

  async function readTables(): Promise<unknown[]> {
    const names = [
      'accounts',
      'balances',
      'api_keys',
      'plans',
      'credit_ledger',
      'members',
      'console_links',
      'signature_files',
      'signature_sources',
      'receipt_keys',
      'download_credentials',
      // An import that ends early leaves a list behind that is not in use.
      "(select * from hash_lists where state = 'active')",
    ]
    const { pool } = deliveries.stores.database
    const texts = [...names, 'deliveries', 'webhook_endpoints', 'audit_log'].map(
      (name) => `(select array_agg(t::text order by t::text) from ${name} t)`,
    )
    return (await pool.query({ text: `select ${texts.join(', ')}`, rowMode: 'array' })).rows
  }

  test('has an entry of the user of the system for every change, and no change is made without one', async () => {
    const { pool } = deliveries.stores.database
    const { id: accountId = '' } = await run('accounts', 'create', '--name', 'audited')
    const { id: keyId = '' } = await run('keys', 'create', '--account', accountId, '--name', 'ci')
    const delivery = await deliveries.add(url)
    await pool.query(
      `insert into webhook_endpoints (account_id, url, host, last_attempt_at, paused_at)
       values ($1, $2, 'receiver.example.com', now(), now())`,
      [accountId, url],
    )
    await pool.query(
      `insert into signature_sources (name, url, every_hours, max_megabytes, held)
       values ('held', 'https://example.com/held.ndb', 24, 1, '[{ "name": "Held.One", "file": "/a" }]')`,
    )
    await addOperator('ada@example.com')
    await addOperator('eve@example.com')
    writeFileSync(join(dir, 'audited.yar'), 'rule audited { strings: $a = "never in any file" condition: $a }\n')

    writeModel(join(dir, 'model'), makeVit())
    writeFileSync(join(dir, 'secret.txt'), 'Authorization: Bearer hush\n')
    writeFileSync(join(dir, 'hashes.csv'), `${'0'.repeat(64)}\n`)
    await pool.query(`insert into receipt_keys (id, public_key) values ('leaked', $1)`, [Buffer.alloc(32)])

    const account = ['--account', accountId]
    const changes: [command: string[], action: string, target: string | null][] = [
      [['accounts', 'update', accountId, '--name', 'renamed'], 'account.update', accountId],
      [['accounts', 'suspend', accountId], 'account.update', accountId],
      [['accounts', 'resume', accountId], 'account.update', accountId],
      [['keys', 'set', keyId, '--allow', 'read'], 'key.restrict', 'ci'],
      [['keys', 'revoke', keyId], 'key.revoke', keyId],
      [
        ['downloads', 'add', join(dir, 'secret.txt'), ...account, '--host', 'files.example.com'],
        'download-credential.add',
        'https://files.example.com',
      ],
      [
        ['downloads', 'remove', 'files.example.com', ...account],
        'download-credential.remove',
        'https://files.example.com',
      ],
      [['hashes', 'import', join(dir, 'hashes.csv'), '--list', 'bad', '--verdict', 'bad'], 'hashes.import', 'bad'],
      [['hashes', 'remove', 'bad'], 'hashes.remove', 'bad'],
      [['receipts', 'withdraw-key', 'leaked'], 'receipt-key.withdraw', 'leaked'],
      [['receipts', 'rotate-key'], 'receipt-key.rotate', 'the new key'],
      [['plans', 'save', 'audited', '--credits', '5', '--rate', '1/1m'], 'plan.save', 'audited'],
      [['plans', 'delete', 'audited'], 'plan.delete', 'audited'],
      [['credits', 'grant', ...account, '--amount', '7'], 'credits.grant', accountId],
      [['operators', 'invite'], 'operator.invite', null],
      [['operators', 'reset', 'ada@example.com'], 'password.invite-reset', 'ada@example.com'],
      [['operators', 'suspend', 'eve@example.com'], 'operator.suspend', 'eve@example.com'],
      [['operators', 'resume', 'eve@example.com'], 'operator.resume', 'eve@example.com'],
      [['operators', 'remove', 'eve@example.com'], 'operator.remove', 'eve@example.com'],
      [['webhooks', 'show-secret', ...account], 'webhook-secret.reveal', accountId],
      [['webhooks', 'rotate-secret', ...account], 'webhook-secret.rotate', accountId],
      [['webhooks', 'replay', delivery], 'delivery.replay', delivery],
      [
        ['webhooks', 'resume', ...account, '--url', url],
        'endpoint.resume',
        'https://receiver.example.com/in?token=(hidden)',
      ],
      [['signatures', 'add', join(dir, 'audited.yar')], 'signatures.add', join(dir, 'audited.yar')],
      [['signatures', 'import', join(dir, 'audited.yar')], 'signatures.import', join(dir, 'audited.yar')],
      [['signatures', 'remove', 'audited.yar'], 'signatures.remove', 'audited.yar'],
      [['sources', 'add', 'audited', 'https://example.com/audited.ndb'], 'sources.add', 'audited'],
      [['sources', 'release', 'held', 'Held.One'], 'sources.release', 'held'],
      [['sources', 'remove', 'audited'], 'sources.remove', 'audited'],
      [['models', 'add', join(dir, 'model')], 'models.add', 'tiny-vit'],
      [['models', 'remove', 'tiny-vit'], 'models.remove', 'tiny-vit'],
      [['backup', join(dir, 'backup')], 'backup', join(dir, 'backup')],
    ]
    await withoutAuditLog(async () => {
      // A backup changes nothing, so its entry follows.
      for (const [command] of changes.filter(([[group]]) => group !== 'backup')) {
        const before = await readTables()
        await assert.rejects(run(...command), command.join(' '))
        assert.deepEqual(await readTables(), before, command.join(' '))
      }
      assert.deepEqual(readdirSync(join(dir, 'models')), [])
    })
    for (const [command] of changes) await run(...command)
    const { rows } = await pool.query<{ id: string }>('select id from receipt_keys where sealed is not null')
    for (const change of changes) if (change[2] === 'the new key') change[2] = rows[0]?.id ?? null

    const audit = makeAuditLog({ pool })
    const records = (await audit.list({}, { before: undefined, limit: 100 })).toReversed()
    const created = [
      ['account.create', accountId],
      ['key.create', 'ci'],
    ]
    assert.deepEqual(
      records.map(({ action, target }) => [action, target]),
      [...created, ...changes.map(([, action, target]) => [action, target])],
    )
    for (const { actor, action } of records) {
      assert.ok(actor.startsWith('command line: ') && actor.endsWith(userInfo().username), `${action} by ${actor}`)
    }
    assert.equal((await audit.verify()).fault, undefined)

    const tested = [
      'accounts create',
      'keys create',
      'webhooks test',
      ...changes.map(([[group, name]]) => `${group} ${name}`),
    ]
    const all = listCommands(await makeProgram())
    const known = [...readers, ...elsewhere, ...tested].map((name) => name.replace(/^backup .*/, 'backup'))
    assert.deepEqual(
      all.filter((name) => !known.includes(name)),
      [],
      'a command that changes something needs an entry in the audit log, and a line in this test',
    )
  })
})

const listCommands = (program: Command): string[] =>
  program.commands.flatMap((group) =>
    group.commands.length === 0 ? [group.name()] : group.commands.map((command) => `${group.name()} ${command.name()}`),
  )
