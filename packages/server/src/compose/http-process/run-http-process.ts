import { Socket } from 'node:net'
import { makeSharedContents } from '../../blobs/remote-content.ts'
import { makeDescriber } from '../../domain/content/media-type.ts'
import { makeAddressPolicy } from '../../domain/scans/web-address.ts'
import { streamToClamd } from '../../engines/clamav/connection.ts'
import { makeForward } from '../../http/forward.ts'
import { makeHttpServer } from '../../http/server.ts'
import { type Closers, newClosers } from '../../runtime/closers.ts'
import { type Link, openLink } from '../../runtime/link.ts'
import { makeServiceLogs, type ServiceLogs } from '../../runtime/logger.ts'
import { type Metrics, makeMetrics } from '../../runtime/metrics.ts'
import type { ServerAddress } from '../../runtime/node-http.ts'
import { version } from '../../runtime/process.ts'
import { countConnectionsByFileLimit, readCertificate, watchHttpCertificate } from '../connections.ts'
import { openContents } from '../content-memory.ts'
import { observeStalls } from '../monitoring.ts'
import { makeRemoteUseCases } from './remote-use-cases.ts'
import { type ControlMessage, linkDescriptor, makeWireErrors, type ProcessSettings } from './wire.ts'

/** How often connections that have become idle are closed during a stop. */
const closeIdleMs = 50

/** Serves HTTP until the main process asks for a stop and the last connection is closed. */
export async function runHttpProcess() {
  const shared = makeSharedContents()
  const metrics = Promise.withResolvers<Metrics>()
  const link = openLink(new Socket({ fd: linkDescriptor }), {
    handlers: {
      read: async (range: { id: number; start: number; end: number }) => ({ body: await shared.read(range) }),
      sendToClamd: async ({ id, address }: { id: number; address: ServerAddress }, { signal }) => ({
        value: await streamToClamd(address, shared.get(id), signal),
      }),
      ping: () => undefined,
      metrics: async () => ({ value: await (await metrics.promise).registry.getMetricsAsJSON() }),
    },
    ...makeWireErrors(() => false),
  })
  const settings = (await link.call('settings')).value as ProcessSettings
  const { config } = settings
  const logs = makeServiceLogs({
    level: config.logLevel,
    region: config.region,
    format: config.logFormat,
    requests: config.logRequests === undefined ? undefined : config.logRequests === 'on',
    isShared: true,
  })
  metrics.resolve(makeMetrics({ region: config.region, version }))
  const [stopping, draining] = [new AbortController(), new AbortController()]
  const closers = newClosers()
  const { server } = await openServer(settings, {
    link,
    shared,
    logs,
    metrics: await metrics.promise,
    stopping: stopping.signal,
    draining: draining.signal,
    closers,
  })
  const connections = watchOpenConnections(server)
  // A server that listens nowhere learns in this way to watch its connections: for slow headers, and for idle ones.
  server.emit('listening')
  // Connections and orders come over the same channel, so that no connection arrives after the order to stop.
  process.on('message', ({ connection, stop, drainWithinMs }: ControlMessage, socket: Socket | undefined) => {
    if (connection !== undefined) link.notify('accepted', connection)
    if (stop === true) stopping.abort()
    if (drainWithinMs !== undefined) {
      stopping.abort()
      draining.abort()
      setTimeout(() => server.closeAllConnections(), drainWithinMs)
      setInterval(() => server.closeIdleConnections(), closeIdleMs)
      connections.endWhenNone()
    }
    // Undefined too when the client has left on the way.
    if (socket === undefined) return
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    server.emit('connection', socket)
  })
  link.notify('ready')
  await connections.ended
  await closers.closeAll()
  await logs.flush()
}

type Deps = {
  link: Link
  shared: ReturnType<typeof makeSharedContents>
  logs: ServiceLogs
  metrics: Metrics
  stopping: AbortSignal
  draining: AbortSignal
  closers: Closers
}

async function openServer(settings: ProcessSettings, deps: Deps) {
  const { link, shared, logs, metrics, stopping, draining, closers } = deps
  const { config, count, endsWithClient } = settings
  const { log } = logs
  const { creditGate } = config
  // The processes remember as many contents together as the whole service may.
  const remembered = Math.ceil(config.verdictCache / count)
  const describe = makeDescriber({ entries: remembered })
  // The main process stores the content of background jobs.
  const { contents } = await openContents(config, { ...settings, recentHeads: remembered }, deps)
  const app = await makeHttpServer({
    ...makeRemoteUseCases({ link, shared, describe, creditGate, endsWithClient }),
    contents,
    jobContents: contents,
    policy: makeAddressPolicy(config.outboundAllow),
    servesApi: true,
    scopes: [],
    forward: makeForward(settings.socketPath),
    countRejectedRequest: (accountId, status) => link.notify('countRejectedRequest', { accountId, status }),
    log,
    logRequest: logs.logRequest,
    metrics,
    stopping,
    draining,
    maxConnections: Math.min(Math.ceil(config.maxConnections / count), countConnectionsByFileLimit()),
    // The main process answers with a refusal when the database cannot be reached, or forbids a change.
    isOutage: () => false,
    findConflict: () => undefined,
    region: config.region,
    publicUrl: config.publicUrl,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    tls: readCertificate(config),
  })
  closers.add(watchHttpCertificate(config, app.server, log))
  observeStalls(metrics, closers)
  return app
}

/** Resolves `ended` when `endWhenNone` was called and no connection is open any more. */
function watchOpenConnections(server: { on(event: 'connection', listener: (socket: Socket) => void): unknown }) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let open = 0
  let isEnding = false
  const endIfNone = () => {
    if (isEnding && open === 0) end()
  }
  server.on('connection', (socket) => {
    open++
    socket.once('close', () => {
      open--
      endIfNone()
    })
  })
  return {
    ended,
    endWhenNone() {
      isEnding = true
      endIfNone()
    },
  }
}
