import { hash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { silentLog } from './silent-log.ts'

/** Test files that need the template at the same time create it once. */
const templateLock = 52_115_099

/** Opens a database of its own, empty or migrated, on the server of this test run. */
export async function openTestDatabase(options: { migrated: boolean } = { migrated: true }) {
  const server = process.env.ASSAY_TEST_DATABASE_URL
  if (server === undefined) throw new Error('Run the tests with npm test: it starts the database that they use.')
  const name = `test_${randomBytes(8).toString('hex')}`
  const isCopied = options.migrated && (await copyTemplate(server, name))
  if (!isCopied) await onServer(server, (client) => client.query(`create database ${name}`))
  const url = toDatabaseUrl(server, name)
  const database = await openDatabase({ url, connections: 8, log: silentLog })
  if (options.migrated && !isCopied) await migrate({ ...database, log: silentLog })
  return {
    ...database,
    url,
    async drop() {
      await database.close()
      await onServer(server, (client) =>
        // Force is the second try only: it needs the right to end an autovacuum worker.
        client.query(`drop database ${name}`).catch(() => client.query(`drop database ${name} with (force)`)),
      )
    },
  }
}

/** Copies a migrated database, which is faster than migrating. Returns false when the server refuses to copy. */
async function copyTemplate(server: string, name: string): Promise<boolean> {
  const template = `template_${hashMigrations()}`
  return onServer(server, async (client) => {
    await client.query('select pg_advisory_lock($1)', [templateLock])
    const { rowCount } = await client.query('select from pg_database where datname = $1', [template])
    if (rowCount === 0) await createTemplate(client, server, template)
    await client.query(`create database ${name} template ${template} strategy file_copy`)
    return true
  }).catch(() => false)
}

/** Renamed when complete, so that a template exists only with the whole schema. */
async function createTemplate(client: pg.Client, server: string, template: string) {
  await client.query(`drop database if exists ${template}_draft`)
  await client.query(`create database ${template}_draft`)
  const url = toDatabaseUrl(server, `${template}_draft`)
  const database = await openDatabase({ url, connections: 2, log: silentLog })
  await migrate({ ...database, log: silentLog }).finally(database.close)
  await client.query(`alter database ${template}_draft rename to ${template}`)
}

/** A server that outlives a change of the migrations gets another template. */
function hashMigrations(): string {
  const folder = new URL('../../src/database/migrations/', import.meta.url)
  const texts = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'))
  return hash('sha256', texts.join()).slice(0, 16)
}

const toDatabaseUrl = (server: string, name: string) => server.replace(/\/\w+(?=\?|$)/, `/${name}`)

async function onServer<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(url)
  await client.connect()
  return work(client).finally(() => client.end())
}
