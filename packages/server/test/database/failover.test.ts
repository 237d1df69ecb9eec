import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runProgram } from '../../../../acceptance/support/run-program.ts'
import { openTcpProxy } from '../../../../acceptance/support/tcp-proxy.ts'
import { makeConnector } from '../../src/database/connector.ts'
import { isOutage } from '../../src/database/database-error.ts'
import { openNotifications } from '../../src/database/notifications.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { findRow, type Queryable, runStatement } from '../../src/database/query.ts'
import { hasPgbouncer, openPgbouncer } from '../support/pgbouncer.ts'
import { openReplicatedPostgres } from '../support/replicated-postgres.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'

describe('a primary and its standby', () => {
  let servers: Awaited<ReturnType<typeof openReplicatedPostgres>>
  before(async () => {
    servers = await openReplicatedPostgres()
  })
  after(() => servers.close())

  const open = (...ports: number[]) => openDatabase({ url: servers.toUrl(...ports), connections: 3, log: silentLog })
  const findPort = async (db: Queryable) =>
    Number((await findRow<{ port: string }>(db, `select current_setting('port') as port`))?.port)

  test('of several hosts the primary is used, wherever it stands; a standby alone is refused', async () => {
    for (const ports of [
      [servers.port, servers.standbyPort],
      [servers.standbyPort, servers.port],
    ]) {
      const database = await open(...ports)
      assert.equal(await findPort(database.pool), servers.port)
      assert.deepEqual(
        database.lacks.map(({ what }) => what),
        ['fsync', 'synchronous_standby_names'],
      )
      await database.close()
    }
    await assert.rejects(open(servers.standbyPort), /127\.0\.0\.1:\d+ is a standby/)
  })

  test('TLS checks what its mode says, and a client certificate signs a role in', async () => {
    const { authority, port } = servers
    const stranger = authority.sign('stranger', 'DNS:stranger')
    const certified = authority.sign('certified', 'DNS:certified')
    const tryWith = async (host: string, query: string, role = 'tester') => {
      const client = makeConnector({ url: `postgres://${role}@${host}:${port}/assay?${query}` }).newClient({})
      await client.connect()
      const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
      await client.end()
      return rows[0]?.ssl
    }
    const root = `sslrootcert=${authority.ca}`
    assert.equal(await tryWith('127.0.0.1', ''), false)
    assert.equal(await tryWith('127.0.0.1', 'sslmode=require'), true)
    assert.equal(await tryWith('127.0.0.1', `sslmode=verify-full&${root}`), true)
    assert.equal(await tryWith('localhost', `sslmode=verify-ca&${root}`), true)
    await assert.rejects(tryWith('localhost', `sslmode=verify-full&${root}`), /altnames/)
    await assert.rejects(tryWith('127.0.0.1', 'sslmode=verify-full'), /certificate/)
    await assert.rejects(tryWith('127.0.0.1', `sslmode=verify-ca&sslrootcert=${stranger.cert}`), /certificate/)
    const withCertificate = ({ cert, key }: typeof certified) =>
      tryWith('127.0.0.1', `sslmode=verify-full&${root}&sslcert=${cert}&sslkey=${key}`, 'certified')
    assert.equal(await withCertificate(certified), true)
    await assert.rejects(withCertificate(stranger), /certificate authentication failed/)
    await assert.rejects(tryWith('127.0.0.1', `sslmode=verify-full&${root}`, 'certified'), /client certificate/)
    // A renewed file is used by the next connection.
    const renewed = join(dirname(authority.ca), 'renewed.crt')
    copyFileSync(stranger.cert, renewed)
    const connector = makeConnector({
      url: `postgres://tester@127.0.0.1:${port}/assay?sslmode=verify-full&sslrootcert=${renewed}`,
    })
    await assert.rejects(connector.newClient({}).connect(), /certificate/)
    copyFileSync(authority.ca, renewed)
    await (await connector.newClient({}).connect()).end()
  })

  test('connect_timeout limits the wait for a single server', { timeout: 60_000 }, async () => {
    const proxy = await openTcpProxy({ host: '127.0.0.1', port: servers.port })
    proxy.setMode('hold')
    const client = makeConnector({ url: `${servers.toUrl(proxy.port)}?connect_timeout=1` }).newClient({})
    await assert.rejects(client.connect(), (error) => isOutage(error)).finally(proxy.close)
  })

  test('a database that lacks something is described: by a table at start, and by doctor', async () => {
    const url = servers.toUrl(servers.port)
    const database = await openDatabase({ url, connections: 150, log: silentLog })
    assert.deepEqual(
      database.lacks.map(({ what }) => what),
      ['free connections', 'fsync'],
    )
    await database.pool.query(`create database ascii encoding 'SQL_ASCII' template template0`)
    await database.close()
    await assert.rejects(openDatabase({ url: url.replace('/assay', '/ascii'), connections: 2, log: silentLog }), {
      message: [
        'PostgreSQL lacks what Assay needs:',
        'PostgreSQL                Has        Needs  Because',
        'encoding of the database  SQL_ASCII  UTF8   file names of all languages are stored; create the database with: encoding UTF8 template template0',
        '',
      ].join('\n'),
    })
    const { out } = await runProgram({ ASSAY_DATABASE_URL: url, ASSAY_PORT: '0' }, 'doctor', '--json')
    assert.deepEqual(
      (JSON.parse(out) as { findings: { check: string }[] }).findings.filter(({ check }) => /^PostgreSQL/.test(check)),
      [
        {
          check: 'PostgreSQL fsync',
          ok: false,
          says: 'has off, needs on: a power cut can destroy the database.',
        },
      ],
    )
  })

  test('a primary that becomes read-only is an outage until it accepts writes again', async () => {
    const database = await open(servers.port, servers.standbyPort)
    const setReadOnly = (value: 'on' | 'off') => servers.setOnPrimary('default_transaction_read_only', value)
    await setReadOnly('on')
    try {
      await waitFor(() => runStatement(database.pool, 'create table refused ()').then(() => false, isOutage))
      await database.watch.findFault().catch(database.watch.reportError)
      await waitFor(() => database.watch.isUnavailable())
      await assert.rejects(open(servers.port), /is read-only/)
    } finally {
      await setReadOnly('off')
    }
    await waitFor(() => !database.watch.isUnavailable())
    await runStatement(database.pool, 'create table accepted ()')
    await database.close()
  })

  test('a frozen primary is left for the promoted standby, and not used again when it thaws', async () => {
    const database = await open(servers.port, servers.standbyPort)
    // An address that stays the same, as that of HAProxy does.
    const target = { host: '127.0.0.1', port: servers.port }
    const proxy = await openTcpProxy(target)
    const behindProxy = await open(proxy.port)
    const notifications = openNotifications({ ...database.direct, log: silentLog })
    await waitFor(() => notifications.isListening())
    try {
      servers.signalFirst('SIGSTOP')
      const waiting = [database, behindProxy].map(({ pool }) =>
        runStatement(pool, 'select 1').catch((error: unknown) => error),
      )
      await waitFor(() => database.watch.isUnavailable())
      await servers.promoteStandby()
      target.port = servers.standbyPort
      await waitFor(() => !database.watch.isUnavailable())
      // The statements that wait for the frozen server fail now, and not when their time is over.
      for (const error of await Promise.all(waiting)) {
        assert(isOutage(error))
        assert.match(String((error as Error).cause), /Connection terminated: another server is the primary now/)
      }
      assert.equal(await findPort(database.pool), servers.standbyPort)
      assert.equal(await findPort(behindProxy.pool), servers.standbyPort)
      await waitFor(() => notifications.isListening())
      servers.signalFirst('SIGCONT')
      // The old primary does not know of its successor, and accepts writes as before.
      const another = await open(servers.port, servers.standbyPort)
      assert.equal(await findPort(another.pool), servers.standbyPort)
      await another.close()
    } finally {
      servers.signalFirst('SIGCONT')
      await notifications.close()
      await database.close()
      await behindProxy.close()
      await proxy.close()
    }
  })

  const skip = hasPgbouncer() ? false : 'pgbouncer is not installed'
  test('connections of the pooler and direct ones follow pgbouncer to another server', { skip }, async () => {
    const target = { host: '127.0.0.1', port: servers.port }
    const route = await openTcpProxy(target)
    // The second server cannot be reached at first, so that the search finds the first one.
    const second = await openTcpProxy({ host: '127.0.0.1', port: servers.standbyPort })
    second.setMode('cut')
    await servers.promoteStandby()
    const pooler = await openPgbouncer(servers.toUrl(route.port), 'transaction')
    const url = pooler.toUrl('assay')
    const directUrl = servers.toUrl(servers.port, second.port)
    await waitFor(() =>
      makeConnector({ url, isShared: true })
        .newClient({})
        .connect()
        .then(
          (client) => client.end().then(() => true),
          () => false,
        ),
    )
    const database = await openDatabase({ url, directUrl, connections: 3, log: silentLog })
    try {
      // The probe opens its connection to pgbouncer while that leads to the first server.
      assert.equal(await database.watch.findFault(), undefined)
      assert.equal(await findPort(database.direct.pool), servers.port)
      target.port = servers.standbyPort
      second.setMode('pass')
      route.setMode('cut')
      route.setMode('pass')
      const connects = () =>
        findPort(database.pool)
          .then((port) => port === servers.standbyPort)
          .catch(() => false)
      await waitFor(connects)
      await waitFor(() =>
        database.watch
          .findFault()
          .then((fault) => fault === undefined)
          .catch(() => false),
      )
      await waitFor(connects)
      assert.equal(await findPort(database.direct.pool), servers.standbyPort)
      // Connections to the new server stay when the probe runs again.
      const client = await database.pool.connect()
      assert.equal(await database.watch.findFault(), undefined)
      assert.equal(await findPort(client), servers.standbyPort)
      client.release()
    } finally {
      await database.close()
      await pooler.close()
      await route.close()
      await second.close()
    }
  })
})
