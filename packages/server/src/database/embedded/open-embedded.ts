import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from '../../runtime/logger.ts'
import { chooseUnprivileged } from '../../runtime/process.ts'
import {
  type Cluster,
  createCluster,
  findPostmaster,
  readServerLog,
  removeStaleLocks,
  startServer,
  stopServer,
} from './cluster.ts'
import { findBinaries, linkLibraries, prepareDataDir, prepareLayout, toSocketFile } from './layout.ts'

const databaseUsers = ['postgres', 'node', 'nobody']

export type EmbeddedDatabase = { url: string; close(): Promise<void> }

/** Advisory lock that every process with a connection shares. */
const userLock = 4_151_002
const startTimeoutMs = 60_000

/**
 * Opens the database in the data directory: connects to a running server (of a service, or left behind by one
 * that was killed), starts one otherwise, and creates the cluster the first time. The caller makes sure that there is
 * one service only; operator commands (`command`) may run beside it.
 */
export async function openEmbedded(deps: {
  dataDir: string
  as: 'service' | 'command'
  log: Logger
}): Promise<EmbeddedDatabase> {
  const { as, log } = deps
  const dataDir = prepareDataDir(deps.dataDir)
  const binaries = findBinaries()
  const unprivileged = chooseUnprivileged('database', databaseUsers, [dirname(binaries.postgres), dataDir])
  const layout = prepareLayout(dataDir, unprivileged.owner)
  linkLibraries(binaries, layout.libraryLinks)
  const cluster: Cluster = { layout, binaries, unprivileged }
  const url = `postgres://assay@/postgres?host=${encodeURIComponent(layout.socketDir)}`

  let isClosing = false
  let restarting: Promise<void> = Promise.resolve()
  let server: ChildProcess | undefined
  let lockClient = await connect()
  return { url, close }

  /** Connects and takes the lock, which shows that this process uses the database. */
  async function connect(): Promise<pg.Client> {
    const deadline = performance.now() + startTimeoutMs
    for (;;) {
      // Without a socket there is no server to connect to, so it is started at once.
      const client = existsSync(toSocketFile(layout)) ? await tryConnect(url) : undefined
      if (client !== undefined) {
        await client.query('select pg_advisory_lock_shared($1)', [userLock])
        // An unexpected end of this connection shows that the server stopped.
        client.once('end', () => {
          if (!isClosing) restarting = restart()
        })
        return client
      }
      if (isClosing) throw new Error('The database is closed')
      if (performance.now() > deadline) throw new Error(`The database did not start in time.\n${readServerLog(layout)}`)
      await launch()
    }
  }

  async function launch() {
    if (!existsSync(layout.clusterDir)) await createCluster(cluster)
    // On a busy machine, a server needs a while until it has written the file that shows it.
    const isStarting = server !== undefined && server.exitCode === null && server.signalCode === null
    if (!isStarting && findPostmaster(layout.clusterDir) === undefined) {
      removeStaleLocks(layout.clusterDir, toSocketFile(layout))
      server = startServer(cluster)
      // The server exits at once if another process was faster, or while children of a killed server hold its memory.
      server.once('error', (error) => log.error({ err: error }, 'the embedded database could not be started'))
    }
    await sleep(20)
  }

  async function restart() {
    log.warn('the embedded database stopped unexpectedly; restarting it')
    while (!isClosing) {
      try {
        lockClient = await connect()
        log.info('the embedded database is running again')
        return
      } catch (error) {
        if (isClosing) return
        log.error({ err: error }, 'the embedded database does not start; retrying')
        await sleep(1000)
      }
    }
  }

  async function close() {
    isClosing = true
    // A server that starts meanwhile would be left behind.
    await restarting
    const mayStop = as === 'service' || (server !== undefined && (await isLastUser(lockClient)))
    await lockClient.end().catch(() => {})
    if (mayStop) await stopServer(layout)
  }
}

async function isLastUser(client: pg.Client): Promise<boolean> {
  try {
    await client.query('select pg_advisory_unlock_shared($1)', [userLock])
    const { rows } = await client.query<{ isAlone: boolean }>('select pg_try_advisory_lock($1) as "isAlone"', [
      userLock,
    ])
    return rows[0]?.isAlone === true
  } catch {
    return false
  }
}

async function tryConnect(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 5000,
    application_name: `assay process ${process.pid}`,
  })
  // A lost connection emits 'error' beside 'end', and an unhandled 'error' would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch {
    await client.end().catch(() => {})
    return undefined
  }
}
