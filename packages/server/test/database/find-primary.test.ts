import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPrimary } from '../../src/database/connector.ts'
import { isOutage, mayHaveCommitted } from '../../src/database/database-error.ts'
import { judgeServer } from '../../src/database/server-lacks.ts'

const [one, two, three] = ['one', 'two', 'three'].map((host) => ({ host, port: 5432 })) as [Host, Host, Host]
type Host = { host: string; port: number }

test('of two servers that accept writes, the one that was promoted later is the primary', async () => {
  const timelines = new Map([
    [one, '0000000A'],
    [two, '0000000B'],
  ])
  const examine = async (host: Host) => {
    const timeline = timelines.get(host)
    if (timeline === undefined) throw new Error('it is a standby')
    return { timeline }
  }
  assert.equal(await findPrimary([one, two, three], examine), two)
  assert.equal(await findPrimary([two, three, one], examine), two)
})

test('a server that does not answer does not hold up the search', async () => {
  const never = new Promise<never>(() => {})
  const found = await findPrimary([one, two], (host) => (host === one ? never : Promise.resolve({ timeline: '1' })))
  assert.equal(found, two)
})

test('without a primary the search says why, and counts as an outage', async () => {
  const error = await findPrimary([one, two], async ({ host }) => {
    throw new Error(`${host} is a standby`)
  }).catch((reason: Error) => reason)
  assert(error instanceof Error && isOutage(error))
  assert.match(error.message, /one:5432: one is a standby; two:5432: two is a standby/)
})

test('what a server says when it is stopped, frozen or no primary is an outage, with or without a commit', () => {
  const codes = ['25006', '25P03', '57P01', '57P02', '57P03', '08006', '08P01']
  for (const code of codes) assert(isOutage({ code }), code)
  assert.deepEqual(
    codes.filter((code) => mayHaveCommitted({ code })),
    ['57P01', '57P02', '08006', '08P01'],
  )
})

const good = {
  version: 150_004,
  versionName: '15.4',
  encoding: 'UTF8',
  role: 'assay',
  database: 'assay',
  schema: 'public',
  creates: true,
  tableOwner: null as string | null,
  freeConnections: 80,
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousCommit: 'on',
  standbyNames: '',
  isolation: 'read committed',
  statementTimeout: '0',
}
const alone = { connections: 10, hosts: 1, isShared: false }

test('a server that lacks nothing has no lacks, and each lack is listed', () => {
  const list = (server: Partial<typeof good>, wanted = alone) =>
    judgeServer({ ...good, ...server }, wanted).map(({ what, required }) => `${what}${required ? '!' : ''}`)
  assert.deepEqual(list({}), [])
  assert.deepEqual(list({ version: 140_009 }), ['version!'])
  assert.deepEqual(list({ encoding: 'LATIN1' }), ['encoding of the database!'])
  assert.deepEqual(list({ creates: false }), ['privilege to create tables!'])
  assert.deepEqual(list({ tableOwner: 'other' }), ['ownership of the tables!'])
  assert.deepEqual(list({ freeConnections: 9 }), ['free connections'])
  assert.deepEqual(list({ fsync: 'off', fullPageWrites: 'off' }), ['fsync', 'full_page_writes'])
  assert.deepEqual(list({ synchronousCommit: 'off' }), ['synchronous_commit'])
  assert.deepEqual(list({ isolation: 'serializable' }), ['default_transaction_isolation'])
  assert.deepEqual(list({ synchronousCommit: 'local' }), [])
  const several = { ...alone, hosts: 2 }
  assert.deepEqual(list({ synchronousCommit: 'local' }, several), ['synchronous_commit', 'synchronous_standby_names'])
  assert.deepEqual(list({ standbyNames: 'b' }, several), [])
  assert.deepEqual(list({}, { ...alone, isShared: true }), ['statement_timeout'])
})
