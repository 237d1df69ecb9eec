import { createHash } from 'node:crypto'
import type { Config } from '../config/load-config.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { parseRestrictions } from '../domain/accounts/key-restrictions.ts'
import { toKeyDigest } from '../domain/accounts/secrets.ts'
import type { AdmissionGate } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { ScanEngine } from '../domain/ports/engines.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Degradation } from '../domain/scans/degradation.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import { serveClamd, toFullReply } from '../listeners/clamd/serve-clamd.ts'
import type { Connection } from '../listeners/connection.ts'
import { fullResponse, timeoutResponse } from '../listeners/icap/icap-response.ts'
import { serveIcap } from '../listeners/icap/serve-icap.ts'
import { type Listener, openListener } from '../listeners/listener.ts'
import { type ListenerScans, makeListenerScans } from '../listeners/listener-scan.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import type { ExternalEngines } from './external-engines.ts'

type Malware = {
  listEngines(): ScanEngine[]
  countWaiting(): number
  degradation: Degradation
  external: Pick<ExternalEngines, 'policyVersion'>
}

type Deps = {
  admission: Admission
  gate: AdmissionGate
  scanning: Scanning
  contents: ContentStore
  /** Undefined on a node without engines, whose scans workers run. */
  malware: Malware | undefined
  isTest: boolean
  metrics: Metrics
  log: Logger
}

type ListenerSettings = {
  protocol: 'clamd' | 'icap'
  /** The environment variable that opens the listener, for messages. */
  setting: string
  address: { host: string; port: number }
  key: string | undefined
  /** Sent to a client that is too slow, and to one beyond `maxConnections`. */
  replies: { timeout: string; full(firstBytes: Buffer): string }
  serve(connection: Connection, scans: ListenerScans): Promise<void>
}

/** Each connection may hold a megabyte of content in memory. */
const maxConnections = 256
const server = `Assay ${version}`

/** Opens the listeners for clients that speak the clamd protocol or ICAP, as far as the settings ask for them. */
export async function openListeners(config: Config, deps: Deps) {
  const listeners: Listener[] = []
  const close = async () => {
    await Promise.all(listeners.map((listener) => listener.close()))
  }
  try {
    if (config.clamdListen !== undefined) listeners.push(await openClamd(config, config.clamdListen, deps))
    if (config.icapListen !== undefined) listeners.push(await openIcap(config, config.icapListen, deps))
  } catch (error) {
    await close()
    throw error
  }
  return {
    startStopping(cutAfterMs: number) {
      for (const listener of listeners) listener.startStopping(cutAfterMs)
    },
    close,
  }
}

async function openClamd(config: Config, address: ListenerSettings['address'], deps: Deps): Promise<Listener> {
  const { malware } = deps
  const onFailure = config.clamdListenOnFailure
  const findVersion = () =>
    (malware?.listEngines() ?? []).find(({ name }) => name === 'ClamAV')?.findState()?.version ?? server
  const countLoad = () => ({
    connections: listener.countConnections(),
    maxConnections,
    waiting: malware?.countWaiting() ?? 0,
  })
  const listener = await openProtocol(deps, {
    protocol: 'clamd',
    setting: 'ASSAY_CLAMD_LISTEN',
    address,
    key: config.clamdListenKey,
    replies: { timeout: 'COMMAND READ TIMED OUT\n', full: (firstBytes) => toFullReply(firstBytes, onFailure) },
    serve: (connection, scans) => serveClamd(connection, { scans, onFailure, findVersion, countLoad }),
  })
  return listener
}

const openIcap = (config: Config, address: ListenerSettings['address'], deps: Deps): Promise<Listener> =>
  openProtocol(deps, {
    protocol: 'icap',
    setting: 'ASSAY_ICAP_LISTEN',
    address,
    key: config.icapKey,
    replies: { timeout: timeoutResponse, full: () => fullResponse },
    serve: (connection, scans) =>
      serveIcap(connection, {
        scans,
        server,
        maxConnections,
        onError: config.icapOnError,
        trickles: config.icapTrickle === 'on',
        findTag: () => toTag(deps.malware),
        reportUnscanned: (about) => deps.log.info({ protocol: 'icap', ...about }, 'content was not scanned'),
      }),
  })

async function openProtocol(deps: Deps, { protocol, setting, address, key, replies, serve }: ListenerSettings) {
  const { metrics, log } = deps
  const { host, port } = address
  if (key === undefined) throw new Error(`The ${protocol} listener has no key`)
  await checkKey(deps, protocol, key)
  const listener = await openListener({
    host,
    port,
    maxConnections,
    replies,
    serve: (connection) =>
      serve(
        connection,
        makeListenerScans({ ...deps, protocol, key, address: connection.address, countFailure: metrics.countFailure }),
      ),
    onFailure(error) {
      metrics.countFailure()
      log.error({ protocol, err: error }, 'a connection failed')
    },
  }).catch((error: Error) => {
    throw new OperatorMistake(
      `${setting} cannot listen on ${host}:${port}: ${error.message}. Stop the program that uses the port, or choose another.`,
      { cause: error },
    )
  })
  metrics.gauge(
    `assay_${protocol}_connections`,
    `Open connections to the ${protocol} listener.`,
    listener.countConnections,
  )
  log.info({ protocol, host, port: listener.port }, 'listener is open')
  return listener
}

/** Warns about a key that is not valid or may not scan; refuses a test key, with which every file would be clean. */
async function checkKey({ gate, isTest, log }: Deps, protocol: string, key: string) {
  const answer = await gate.admit({ keyDigest: toKeyDigest(key), countsRequest: false })
  if (answer.outcome === 'unknown-key') {
    log.warn({ protocol }, 'the API key of this listener is not valid: every scan will be refused')
  } else if (answer.caller.isTest && !isTest) {
    throw new OperatorMistake(
      `The key of the ${protocol} listener is a test key: every file would be called clean. Set another key.`,
    )
  } else {
    const { allow, kinds } = parseRestrictions(answer.caller.restrictions)
    if (allow?.includes('scan') === false || kinds?.includes('malware') === false)
      log.warn({ protocol }, 'the API key of this listener may not scan for malware: every scan will be refused')
  }
}

/** The ICAP ISTag: at most 32 characters, in quotes. Proxies drop cached verdicts when it changes. */
function toTag(malware: Malware | undefined): string {
  const states = (malware?.listEngines() ?? []).map((engine) => engine.findState())
  const versions = states.map((state) => state?.verdictVersion ?? `${state?.version} ${state?.signaturesAt?.getTime()}`)
  const isDegraded = malware?.degradation.find() !== undefined
  return `"${createHash('sha256')
    .update([...versions, isDegraded, malware?.external.policyVersion].join('\n'))
    .digest('hex')
    .slice(0, 24)}"`
}
