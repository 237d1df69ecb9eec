import { EngineDown } from '../../../domain/ports/engines.ts'
import { makeSemaphore, type Semaphore } from '../../../domain/semaphore.ts'
import type { ServerAddress } from '../../../runtime/node-http.ts'
import { version } from '../../../runtime/process.ts'
import type { OptionReader } from '../../../runtime/toml-options.ts'
import { type ExternalAdapter, type ExternalKind, readTlsOptions } from '../adapter.ts'
import { type IcapConnection, type IcapService, openIcapConnection, toOptionsRequest } from './icap-connection.ts'
import { exchangeContent } from './icap-exchange.ts'
import { choosePreview, type IcapOptions, type ThreatHeader, toOptions } from './icap-findings.ts'

const defaultPorts = { 'icap:': 1344, 'icaps:': 11344 }
const urlForm = /^icaps?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?\/[!-~]*$/i
const urlMust = 'must be the address of a service such as icap://scanner.example.com:1344/avscan, or with icaps://'

/** An ICAP server of any product. */
export const icapKind: ExternalKind = {
  read(options) {
    const { url, host, address } = readService(options)
    const method = options.oneOf('method', ['RESPMOD', 'REQMOD'], 'RESPMOD')
    const usesPreview = options.flag('preview', true)
    const threatHeader = readThreatHeader(options)
    const service = { url, host, method, userAgent: `Assay/${version}` }
    return ({ concurrency }) => openIcapAdapter({ address, service, usesPreview, threatHeader }, concurrency)
  },
}

function readService(options: OptionReader): { url: string; host: string; address: ServerAddress } {
  const url = options.requireText('url', '"icap://scanner.example.com:1344/avscan"', urlForm, urlMust)
  if (url !== '' && !URL.canParse(url)) options.note('url', urlMust)
  const { protocol, hostname, port, host } = new URL(URL.canParse(url) ? url : 'icap://unknown/')
  const isSecure = protocol === 'icaps:'
  const tls = isSecure ? readTlsOptions(options) : undefined
  const socket = options.text('socket', /^\/.+/, 'must be the path of a unix socket such as /run/c-icap/icap.sock')
  if (socket !== undefined) {
    if (isSecure) options.note('socket', 'is for icap:// addresses: a socket is local')
    return { url, host, address: { path: socket } }
  }
  const number = port === '' ? defaultPorts[isSecure ? 'icaps:' : 'icap:'] : Number(port)
  const address = { host: hostname.replaceAll(/^\[|\]$/g, ''), port: number, ...(tls === undefined ? {} : { tls }) }
  return { url, host, address }
}

function readThreatHeader(options: OptionReader): ThreatHeader | undefined {
  const header = options.text('threat_header', /^[\w-]+$/, 'must be the name of a header such as X-Scan-Result')
  const pattern = options.pattern('threat_pattern', undefined)
  if ((header === undefined) !== (pattern === undefined)) {
    options.note('threat_header', 'and threat_pattern go together: set both or neither')
  }
  return header === undefined || pattern === undefined ? undefined : { header, pattern }
}

type IcapSettings = {
  address: ServerAddress
  service: IcapService
  /** Whether content is sent with the preview that the server wants. */
  usesPreview: boolean
  threatHeader: ThreatHeader | undefined
}

const maxWaitMs = 20_000

/** An ICAP server. Connections are kept for the next scan; OPTIONS is asked again when its time is over. */
export function openIcapAdapter(settings: IcapSettings, concurrency: number): ExternalAdapter {
  const { service } = settings
  const connections = makeConnections(settings.address, concurrency)
  let options: IcapOptions | undefined
  let hasAsked = false
  /** The limit that the last answer to OPTIONS named. */
  let maxConnections: number | undefined
  /** Scans take turns with OPTIONS, and those behind the first use its answer. */
  const optionsTurn = makeSemaphore({ count: 1, maxWaitMs })
  let permits: { count: number; semaphore: Semaphore } | undefined

  async function findOptions(signal: AbortSignal): Promise<IcapOptions> {
    if (options !== undefined && performance.now() < options.validUntil) return options
    return optionsTurn.use(
      async () => {
        if (options !== undefined && performance.now() < options.validUntil) return options
        options = await connections.use(signal, (connection) => askOptions(connection, service))
        maxConnections = options.maxConnections
        hasAsked = true
        return options
      },
      { signal },
    )
  }

  /** Keeps to the number of connections that the server takes. */
  function limit<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    if (maxConnections === undefined || maxConnections >= concurrency) return run()
    if (permits?.count !== maxConnections) {
      permits = { count: maxConnections, semaphore: makeSemaphore({ count: maxConnections, maxWaitMs }) }
    }
    return permits.semaphore.use(run, { signal })
  }

  return {
    async scan(content, { signal, fileName }) {
      signal.throwIfAborted()
      // The limit is not known before the first answer to OPTIONS.
      const known = hasAsked ? undefined : await findOptions(signal)
      const { found, result, tag } = await limit(signal, async () => {
        const found = known ?? (await findOptions(signal))
        const exchange = (preview: number | undefined) =>
          connections.use(signal, async (connection) => {
            const request = { ...settings, content, fileName, preview, answers204: found.answers204 }
            const { isComplete, ...value } = await exchangeContent(connection, request)
            return { value, isComplete }
          })
        const first = await exchange(settings.usesPreview ? choosePreview(found, fileName) : undefined)
        // A server that needs no more than the preview has not scanned the content, so it gets all of it at once.
        const { result, tag = found.tag } = first.result === 'partial' ? await exchange(undefined) : first
        return { found, result, tag }
      })
      if (result === 'partial') throw new EngineDown('the server answered to a preview that it did not get')
      // Another tag tells that the service has changed.
      if (tag !== found.tag) options = undefined
      return { ...result, version: toVersion(found, tag) }
    },
    async close() {
      connections.close()
    },
  }
}

const toVersion = ({ service = 'ICAP' }: IcapOptions, tag: string | undefined) =>
  tag === undefined ? undefined : `${service.slice(0, 60)} ${tag}`

const maxOptionsBytes = 64 * 1024

async function askOptions(connection: IcapConnection, service: IcapService) {
  await connection.write([toOptionsRequest(service)])
  const event = await connection.next()
  if (event.kind !== 'head') throw new EngineDown('the server sent a body without a head')
  const { status, headers, closes } = event.head
  if (status !== 200) throw new EngineDown(`the server answered OPTIONS with the status ${status}`)
  const methods = headers.get('methods')
  if (methods !== undefined && !methods.join().toUpperCase().includes(service.method)) {
    throw new EngineDown(`the service has no ${service.method}: its methods are ${methods.join()}`)
  }
  let bytes = 0
  for (let next = await connection.next(); next.kind !== 'end'; next = await connection.next()) {
    if (next.kind === 'content') bytes += next.bytes.length
    if (bytes > maxOptionsBytes) throw new EngineDown('the answer to OPTIONS is too long')
  }
  return { value: toOptions(headers), isComplete: !closes }
}

type Outcome<T> = { value: T; isComplete: boolean }

/** Connections of which up to `maxIdle` are kept while they have no work. */
function makeConnections(address: ServerAddress, maxIdle: number) {
  const idle: IcapConnection[] = []
  let isClosed = false

  function takeIdle(): IcapConnection | undefined {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.canBeReused()) return connection
      connection.close()
    }
    return undefined
  }

  async function useOne<T>(
    connection: IcapConnection,
    signal: AbortSignal,
    exchange: (connection: IcapConnection) => Promise<Outcome<T>>,
  ): Promise<T> {
    const stop = () => connection.fail('the scan was given up')
    signal.addEventListener('abort', stop, { once: true })
    try {
      connection.begin()
      const { value, isComplete } = await exchange(connection)
      if (isComplete) connection.end()
      if (isComplete && connection.canBeReused() && idle.length < maxIdle && !isClosed) idle.push(connection)
      else connection.close()
      return value
    } catch (error) {
      connection.close()
      signal.throwIfAborted()
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  return {
    async use<T>(signal: AbortSignal, exchange: (connection: IcapConnection) => Promise<Outcome<T>>): Promise<T> {
      const kept = takeIdle()
      try {
        return await useOne(kept ?? openIcapConnection(address), signal, exchange)
      } catch (error) {
        if (kept?.wasClosedWhileIdle() !== true || signal.aborted) throw error
        return await useOne(openIcapConnection(address), signal, exchange)
      }
    },
    close() {
      isClosed = true
      for (const connection of idle.splice(0)) connection.close()
    },
  }
}
