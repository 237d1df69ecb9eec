import { createHash } from 'node:crypto'
import type { Config } from '../config/load-config.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { toKeyDigest } from '../domain/accounts/secrets.ts'
import type { AdmissionGate } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { ScanEngine } from '../domain/ports/engines.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import { serveClamd } from '../listeners/clamd/serve-clamd.ts'
import type { Connection } from '../listeners/connection.ts'
import { toClosingResponse } from '../listeners/icap/icap-response.ts'
import { serveIcap } from '../listeners/icap/serve-icap.ts'
import { type Listener, openListener } from '../listeners/listener.ts'
import { type ListenerScans, makeListenerScans } from '../listeners/listener-scan.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'

type Place = { host: string; port: number }

type Deps = {
  admission: Admission
  gate: AdmissionGate
  scanning: Scanning
  contents: ContentStore
  /** Undefined where there are no engines: others look for us. */
  malware: { listEngines(): ScanEngine[]; countWaiting(): number } | undefined
  isTest: boolean
  metrics: Metrics
  log: Logger
}

/** Each may hold a megabyte of content in memory. */
const maxConnections = 256
const server = `Assay ${version}`

/** Ways in for those who do not speak our HTTP. Closed unless the settings open them. */
export async function openListeners(config: Config, deps: Deps) {
  const { malware, metrics, log } = deps
  const open: Listener[] = []
  const listeners = {
    startStopping(cutAfterMs: number) {
      for (const listener of open) listener.startStopping(cutAfterMs)
    },
    async close() {
      await Promise.all(open.map((listener) => listener.close()))
    },
  }

  async function openNamedListener(
    { protocol, setting, host, port, key }: { protocol: string; setting: string; key: string | undefined } & Place,
    replies: { timeout: string; full: string },
    serve: (connection: Connection, scans: ListenerScans) => Promise<void>,
  ): Promise<Listener> {
    const { countFailure } = metrics
    if (key === undefined) throw new Error(`The ${protocol} listener has no key`)
    await checkKey(protocol, key)
    const scans = makeListenerScans({ ...deps, protocol, key, countFailure })
    const listener = await openListener({
      ...{ host, port, maxConnections, replies },
      serve: (connection) => serve(connection, scans),
      onFailure(error) {
        countFailure()
        log.error({ protocol, err: error }, 'a connection failed')
      },
    }).catch((error: Error) => {
      const what = `${setting} cannot be opened at ${host}:${port}`
      throw new OperatorMistake(`${what}: ${error.message}. Stop what is there, or choose another.`, { cause: error })
    })
    open.push(listener)
    metrics.gauge(
      `assay_${protocol}_connections`,
      `Open connections to the ${protocol} listener.`,
      listener.countConnections,
    )
    log.info({ protocol, host, port: listener.port }, 'listener open')
    return listener
  }

  async function checkKey(protocol: string, key: string) {
    const answer = await deps.gate.ask({ keyDigest: toKeyDigest(key), countsRequest: false })
    if (answer.outcome === 'unknown-key')
      log.warn({ protocol }, 'the API key of this listener is not valid: every scan will be refused')
    else if (answer.caller.isTest && !deps.isTest)
      throw new OperatorMistake(
        `The key of the ${protocol} listener is for tests: everything would be called clean. Give another.`,
      )
  }

  try {
    if (config.clamdListen !== undefined) {
      const countLoad = () => ({
        connections: clamd.countConnections(),
        ...{ maxConnections, waiting: malware?.countWaiting() ?? 0 },
      })
      const findVersion = () =>
        (malware?.listEngines() ?? []).find(({ name }) => name === 'ClamAV')?.findState()?.version ?? server
      const clamd = await openNamedListener(
        { protocol: 'clamd', setting: 'ASSAY_CLAMD_LISTEN', ...config.clamdListen, key: config.clamdListenKey },
        { timeout: 'COMMAND READ TIMED OUT\n', full: '' },
        (connection, scans) => serveClamd(connection, { scans, findVersion, countLoad }),
      )
    }
    if (config.icapListen !== undefined) {
      await openNamedListener(
        { protocol: 'icap', setting: 'ASSAY_ICAP_LISTEN', ...config.icapListen, key: config.icapKey },
        { timeout: toClosingResponse(408), full: toClosingResponse(503) },
        (connection, scans) =>
          serveIcap(connection, {
            ...{ scans, server, maxConnections, onError: config.icapOnError },
            findTag: () => toTag(malware?.listEngines() ?? []),
            reportUnscanned: (about) => log.info({ protocol: 'icap', ...about }, 'not scanned'),
          }),
      )
    }
    return listeners
  } catch (error) {
    await listeners.close()
    throw error
  }
}

/** At most 32 characters, in quotes. Proxies forget what they remember when it changes. */
function toTag(engines: ScanEngine[]): string {
  const states = engines.map((engine) => engine.findState())
  const known = states.map((state) => state?.verdictVersion ?? `${state?.version} ${state?.signaturesAt?.getTime()}`)
  return `"${createHash('sha256').update(known.join('\n')).digest('hex').slice(0, 24)}"`
}
