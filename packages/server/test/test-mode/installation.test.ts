import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openStores } from '../../src/compose/stores.ts'
import { type Config, loadConfig } from '../../src/config/load-config.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { testMasterKeyText } from '../support/test-sealer.ts'

type Database = Awaited<ReturnType<typeof openTestDatabase>>
const key = { ASSAY_MASTER_KEY: testMasterKeyText }
const application = { name: 'first', plan: 'unlimited' }

describe('an installation', () => {
  const databases: Database[] = []
  const dir = mkdtempSync(join(tmpdir(), 'assay-installation-'))
  let fresh: Config
  let earlier: Config
  before(async () => {
    const [one, two] = [await openTestDatabase({ migrated: false }), await openTestDatabase()]
    databases.push(one, two)
    fresh = loadConfig({ ASSAY_DATABASE_URL: one.url, ASSAY_DATABASE_CONNECTIONS: '2', ...key }).config
    earlier = loadConfig({ ASSAY_DATABASE_URL: two.url, ASSAY_DATABASE_CONNECTIONS: '2', ...key }).config
  })
  after(async () => {
    for (const database of databases) await database.drop()
    rmSync(dir, { recursive: true, force: true })
  })
  /** Opens a node with a data directory of its own, because only one service may use one. */
  const open = (config: Config, isTest: boolean) =>
    openStores({ ...config, dataDir: mkdtempSync(join(dir, 'node-')) }, 'service', silentLog, { isTest })
  const refuses = (config: Config, isTest: boolean, says: RegExp) =>
    assert.rejects(open(config, isTest), (error) => error instanceof OperatorMistake && says.test(error.message))

  test('that begins in test mode stays in it: every key is a test key, and it never scans', async () => {
    // Several nodes start at once.
    const nodes = await Promise.all([open(fresh, true), open(fresh, true), open(fresh, true)])
    const registered = await nodes[0]?.registration.register({ ...application, apiKey: 'chosen-by-operator' })
    for (const stores of nodes) await stores.close()
    await refuses(fresh, false, /belongs to a test installation.*--test/)

    const guest = await openStores(fresh, 'command', silentLog)
    await guest.registration.register(application)
    await guest.registration.createKey(registered?.account.id ?? '', { name: 'another', expiresAt: null })
    const keys = await guest.keys.listKeys(null)
    await guest.close()
    assert.deepEqual(
      keys.map(({ isTest }) => isTest),
      [true, true, true],
    )
  })

  test('with accounts refuses test mode and keeps scanning', async () => {
    const guest = await openStores(earlier, 'command', silentLog)
    await guest.registration.register(application)
    await guest.close()
    await refuses(earlier, true, /belongs to an installation that scans.*ASSAY_DATA_DIR/)
    await (await open(earlier, false)).close()
    await refuses(earlier, true, /belongs to an installation that scans/)
  })

  test('that was started to scan refuses test mode, even without accounts', async () => {
    const database = await openTestDatabase()
    databases.push(database)
    const config = loadConfig({ ASSAY_DATABASE_URL: database.url, ASSAY_DATABASE_CONNECTIONS: '2', ...key }).config
    await (await open(config, false)).close()
    await refuses(config, true, /belongs to an installation that scans/)
  })

  test('refuses a node with another master key, whose secrets nobody else could open', async () => {
    const stranger = { ...earlier, masterKey: Buffer.alloc(32, 9) }
    await refuses(stranger, false, /sealed with the master key [0-9a-f]{16}, and ASSAY_MASTER_KEY is another key/)
    const guest = await openStores(stranger, 'command', silentLog)
    await assert.rejects(guest.registration.register(application), /ASSAY_MASTER_KEY is another key/)
    await guest.close()
  })
})
