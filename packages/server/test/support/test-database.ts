import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { silentLog } from './silent-log.ts'

/** A database of its own on the server of this test run, empty or migrated. */
export async function openTestDatabase(options: { migrated: boolean } = { migrated: true }) {
  const server = process.env.ASSAY_TEST_DATABASE_URL
  if (server === undefined) throw new Error('Run the tests with npm test: it starts the database that they use.')
  const name = `test_${randomBytes(8).toString('hex')}`
  await runOnServer(server, `create database ${name}`)
  const url = server.replace(/\/\w+(?=\?|$)/, `/${name}`)
  const database = await openDatabase({ url, connections: 8, log: silentLog })
  if (options.migrated) await migrate({ ...database, log: silentLog })
  return {
    ...database,
    url,
    async drop() {
      await database.close()
      // By force only when somebody is still connected: it would ask for the right to end an autovacuum, too.
      await runOnServer(server, `drop database ${name}`).catch(() =>
        runOnServer(server, `drop database ${name} with (force)`),
      )
    },
  }
}

async function runOnServer(url: string, statement: string) {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
