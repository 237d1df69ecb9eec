import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config/load-config.ts'
import { waitAtMost } from '../../runtime/clock.ts'
import type { Closers } from '../../runtime/closers.ts'
import { openOutsideDir, shortDirs } from '../../runtime/files.ts'
import type { Link } from '../../runtime/link.ts'
import type { Logger } from '../../runtime/logger.ts'
import { addMetrics, keepTotals, type Metrics, type MetricValues } from '../../runtime/metrics.ts'
import { countConnectionsByFileLimit, type HttpListener } from '../connections.ts'
import { divideContentMemory, findPictureMemory } from '../content-memory.ts'
import { openHttpProcesses } from './open-processes.ts'
import { type CallDeps, toProcessConfig } from './wire.ts'

type Deps = {
  /** Serves what HTTP processes pass on. */
  app: FastifyInstance
  processes: number
  calls: CallDeps
  isOutage(error: unknown): boolean
  metrics: Metrics
  log: Logger
  closers: Closers
}

/**
 * Listens on the port of the service and passes each connection to one of several processes, in turn. The main process
 * keeps the port, so that connections wait while a process is replaced.
 */
export async function listenInProcesses(config: Config, deps: Deps): Promise<HttpListener> {
  const { app, processes: count, calls, isOutage, metrics, log, closers } = deps
  const socketPath = toSocketPath(resolve(config.dataDir))
  await app.listen({ path: socketPath })
  chmodSync(socketPath, 0o600)
  closers.add(() => app.close())
  const processMetrics = makeProcessMetrics()
  metrics.addFrom(processMetrics.read)
  const processes = await openHttpProcesses({
    settings: {
      config: toProcessConfig(config),
      count,
      socketPath,
      memoryBytes: divideContentMemory(config).ofProcess,
      pictureBytes: Math.ceil(findPictureMemory(config) / count),
      endsWithClient: calls.scansRemotely,
    },
    calls,
    isOutage,
    log,
    onReady: processMetrics.add,
  })
  let drainMs = 0
  closers.add(() => processes.close(drainMs))
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, processes.pass)
  // Connections that no process has confirmed yet are files of this process.
  server.maxConnections = Math.min(config.maxConnections, countConnectionsByFileLimit())
  await listen(server, config)
  // Not awaited: it waits for all connections, which the processes end.
  closers.add(() => void server.close())
  return {
    url: toUrl(server, config),
    startStopping: processes.startStopping,
    startDraining(withinMs) {
      drainMs = withinMs
      return () => {}
    },
  }
}

/** The longest socket path that the kernel accepts, in bytes, without the final NUL. */
const maxSocketPath = 107

function toSocketPath(dataDir: string): string {
  const inside = join(dataDir, 'http')
  mkdirSync(inside, { recursive: true, mode: 0o700 })
  const path = join(inside, 'main.sock')
  const short =
    Buffer.byteLength(path) <= maxSocketPath
      ? path
      : join(openOutsideDir(shortDirs, join(inside, 'short-path')), 'main.sock')
  // Left by a service that was killed. The lock of the data directory makes sure that no other one uses it.
  rmSync(short, { force: true })
  return short
}

function listen(server: Server, { host, port }: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function toUrl(server: Server, { tlsCert }: Config): string {
  const found = server.address()
  if (found === null || typeof found === 'string') throw new Error('The HTTP server has no address')
  const { address, port, family } = found
  const host = address === '0.0.0.0' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `${tlsCert === undefined ? 'http' : 'https'}://${host}:${port}`
}

/** How long a scrape waits for a process; then its last values are used. */
const answerMs = 2000

/**
 * Reads the metrics of the HTTP processes. Counts of a process that has ended are kept, as far as they were read, so
 * that totals do not fall.
 */
export function makeProcessMetrics() {
  const latest = new Map<Link, MetricValues>()
  let ended: MetricValues = []

  let keeping = Promise.resolve()

  async function readOne(link: Link) {
    const reading = link.call('metrics').then(
      ({ value }) => {
        if (latest.has(link)) latest.set(link, value as MetricValues)
      },
      () => {},
    )
    await waitAtMost(reading, answerMs)
  }

  /** In one turn, values leave those of running processes and join those of ended ones: no scrape has them twice. */
  async function keep(link: Link) {
    const sum = await addMetrics([ended, keepTotals(latest.get(link) ?? [])])
    latest.delete(link)
    ended = sum
  }

  return {
    add(link: Link) {
      latest.set(link, [])
      void link.closed.then(() => {
        keeping = keeping.then(() => keep(link))
      })
    },
    async read(): Promise<MetricValues[]> {
      await Promise.all([...latest.keys()].map(readOne))
      return [...latest.values(), ended]
    },
  }
}
