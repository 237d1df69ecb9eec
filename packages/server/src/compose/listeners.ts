import { createHash } from 'node:crypto'
import type { Config } from '../config/load-config.ts'
import { isTestInstallation } from '../database/account-store.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { makeNetworkCheck, parseRestrictions, toKeyDigest } from '../domain/accounts/keys.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { AdmissionAnswer, AdmissionGate } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { ScanEngine } from '../domain/ports/engines.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Degradation } from '../domain/scans/scanner.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import type { Connection, LastReplies } from '../listeners/connection.ts'
import { timeoutResponse, toFailureResponse } from '../listeners/icap/icap-response.ts'
import { serveIcap } from '../listeners/icap/serve-icap.ts'
import type { ListenAddress } from '../listeners/listen-address.ts'
import { type Listener, openListener } from '../listeners/listener.ts'
import { type ListenerScans, makeListenerScans } from '../listeners/listener-scan.ts'
import { serveClamd, toClamdReplies } from '../listeners/serve-clamd.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { fitListeners } from './connections.ts'
import type { ExternalEngines } from './external-engines.ts'
import { type ListenerDefinition, readListeners, toAddressText } from './listener-definitions.ts'
import type { Stores } from './stores.ts'

type Malware = {
  listEngines(): ScanEngine[]
  countWaiting(): number
  degradation: Degradation
  external: Pick<ExternalEngines, 'policyVersion'>
}

type Deps = {
  admission: Admission
  gate: AdmissionGate
  accounts: Pick<AccountStore, 'findAccount'>
  scanning: Scanning
  contents: ContentStore
  /** Undefined on a node without engines, whose scans workers run. */
  malware: Malware | undefined
  isTest: boolean
  metrics: Metrics
  log: Logger
}

const server = `Assay ${version}`

/** Opens the listeners for clients that speak the clamd protocol or ICAP, as far as the settings ask for them. */
export async function openListeners(config: Config, deps: Deps) {
  const open: { definition: ListenerDefinition; listener: Listener }[] = []
  const close = async () => {
    await Promise.all(open.map(({ listener }) => listener.close()))
  }
  try {
    for (const definition of fitToFileLimit(readListeners(config), deps.log)) {
      open.push({ definition, listener: await openOne(definition, deps) })
    }
  } catch (error) {
    await close()
    throw error
  }
  observe(open, deps.metrics)
  return {
    /** Connections that the listeners may hold. */
    maxConnections: open.reduce((sum, { definition }) => sum + definition.maxConnections, 0),
    /** Describes the listeners for the status page. */
    list: () => Promise.all(open.map(({ definition, listener }) => describe(definition, listener, deps))),
    startStopping(cutAfterMs: number) {
      for (const { listener } of open) listener.startStopping(cutAfterMs)
    },
    close,
  }
}

function fitToFileLimit(definitions: ListenerDefinition[], log: Logger): ListenerDefinition[] {
  const limits = fitListeners(definitions.map(({ maxConnections }) => maxConnections))
  return definitions.map((definition, i) => {
    const maxConnections = limits[i] ?? definition.maxConnections
    if (maxConnections === definition.maxConnections) return definition
    const { name, maxConnections: wanted } = definition
    log.warn(
      { listener: name, wanted, maxConnections },
      'the limit of open files allows this listener fewer connections',
    )
    return { ...definition, maxConnections }
  })
}

async function openOne(definition: ListenerDefinition, deps: Deps): Promise<Listener> {
  const { name, kind, origin, address, tls, networks, maxConnections, maxBytes, apiKey } = definition
  const { metrics, log } = deps
  const about = { protocol: kind, listener: name }
  await checkKey(definition, deps)
  const protocol = kind === 'clamd' ? toClamd(definition, deps, () => listener) : toIcap(definition, deps)
  const scans = { ...deps, ...about, key: apiKey, maxBytes, countFailure: metrics.countFailure }
  const listener: Listener = await openListener({
    address,
    tls,
    allows: networks && makeNetworkCheck(networks),
    maxConnections,
    replies: protocol.replies,
    serve: (connection) => protocol.serve(connection, makeListenerScans({ ...scans, address: connection.address })),
    onFailure(error) {
      metrics.countFailure()
      log.error({ ...about, err: error }, 'a connection failed')
    },
    onRejected: makeRejectionLog(log, about),
    log,
  }).catch((error: Error) => {
    const place = toAddressText(address)
    throw new OperatorMistake(`${origin} cannot listen on ${place}: ${error.message}. ${advise(address, error)}`, {
      cause: error,
    })
  })
  const place = 'path' in address ? { path: address.path } : { host: address.host, port: listener.port }
  log.info({ ...about, ...place, tls: toTlsText(definition) }, 'listener is open')
  return listener
}

/** Tells how to make an address usable. */
function advise(address: ListenAddress, { code }: NodeJS.ErrnoException): string {
  if (!('path' in address)) {
    if (code === 'EACCES') return 'Choose a port from 1024 on, or give the service the capability CAP_NET_BIND_SERVICE.'
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'Choose an address of this machine.'
    return 'Stop the program that uses the port, or choose another.'
  }
  if (code === 'ENOENT') return 'Create its directory, and let the user of the service write to it.'
  if (code === 'EACCES') return 'Let the user of the service write to its directory.'
  if (code === 'EPERM' || code === 'EINVAL')
    return 'Only root may set any owner; others may set a group that they belong to. Set mode instead.'
  return 'Remove the file or stop the program that uses it, or choose another path.'
}

type Protocol = {
  replies: LastReplies
  serve(connection: Connection, scans: ListenerScans): Promise<void>
}

function toClamd({ onFailure, maxConnections }: ListenerDefinition, { malware }: Deps, find: () => Listener): Protocol {
  const findVersion = () =>
    (malware?.listEngines() ?? []).find(({ name }) => name === 'ClamAV')?.findState()?.version ?? server
  const countLoad = () => ({
    connections: find().countConnections(),
    maxConnections,
    waiting: malware?.countWaiting() ?? 0,
  })
  return {
    replies: toClamdReplies(onFailure),
    serve: (connection, scans) => serveClamd(connection, { scans, onFailure, findVersion, countLoad }),
  }
}

const toIcap = (definition: ListenerDefinition, { malware, log }: Deps): Protocol => ({
  replies: { timeout: timeoutResponse, fail: toFailureResponse },
  serve: (connection, scans) =>
    serveIcap(connection, {
      scans,
      server,
      maxConnections: definition.maxConnections,
      onError: definition.onError,
      trickles: definition.trickles,
      findTag: () => toTag(malware),
      reportUnscanned: (about) =>
        log.info({ protocol: 'icap', listener: definition.name, ...about }, 'content was not scanned'),
    }),
})

const quietMs = 10_000
const maxQuiet = 100

/** Logs why a connection is refused, each reason at most once in 10 s: everybody who reaches the port causes it. */
function makeRejectionLog(log: Logger, about: object) {
  const quietUntil = new Map<string, number>()
  return (address: string, reason: string) => {
    const now = performance.now()
    if ((quietUntil.get(reason) ?? 0) > now) return
    if (quietUntil.size >= maxQuiet) quietUntil.clear()
    quietUntil.set(reason, now + quietMs)
    log.warn({ ...about, address, reason }, 'the listener refused a connection')
  }
}

function observe(open: { definition: ListenerDefinition; listener: Listener }[], metrics: Metrics) {
  if (open.length === 0) return
  const read = (pick: (listener: Listener) => number) => () =>
    open.map(({ definition, listener }) => ({ label: definition.name, value: pick(listener) }))
  const connections = { name: 'assay_listener_connections', help: 'Open connections of a listener.' }
  metrics.byLabel(
    'listener',
    connections,
    read((listener) => listener.countConnections()),
  )
  const help = 'Connections that a listener refused: too many, from other networks, or without a valid certificate.'
  const rejected = { name: 'assay_listener_rejected_total', help }
  metrics.byLabel(
    'listener',
    rejected,
    read((listener) => listener.countRejected()),
  )
}

const toTlsText = ({ tls }: ListenerDefinition) =>
  tls === undefined ? ('off' as const) : tls.requiresCertificate ? ('client certificates' as const) : ('on' as const)

async function describe(definition: ListenerDefinition, listener: Listener, { gate, accounts }: Deps) {
  const { name, kind, address, maxConnections } = definition
  const account = await findAccount(await admitKey(gate, definition), accounts)
  return {
    name,
    kind,
    address: toAddressText(address, listener.port),
    tls: toTlsText(definition),
    account: account === undefined ? null : { id: account.id, name: account.name },
    connections: listener.countConnections(),
    max_connections: maxConnections,
    rejected: listener.countRejected(),
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

/** Describes a listener for `doctor`: its address and account, or why its scans would be refused. */
export async function checkListener(definition: ListenerDefinition, { database, accounts }: Stores) {
  const { kind, origin, address } = definition
  const { isUnavailable, reportError: onOutage } = database.watch
  const gate = makeAdmissionGate({
    pool: database.pool,
    observeBatch() {},
    openBalances: undefined,
    isUnavailable,
    onOutage,
  })
  const answer = await admitKey(gate, definition)
  const fault = findKeyFault(definition, answer, await isTestInstallation(database))
  if (fault !== undefined) {
    const says = `${origin}: the API key ${fault}. Create one: npm run assay -- keys create --account ID --name NAME.`
    return { ok: false, says }
  }
  const account = await findAccount(answer, accounts)
  return { ok: true, says: `${kind} on ${toAddressText(address)} for the account ${account?.name ?? 'unknown'}` }
}

/** Warns about a key that is not valid or may not scan; refuses a test key, with which every file would be clean. */
async function checkKey(definition: ListenerDefinition, { gate, isTest, log }: Deps) {
  const { name, kind } = definition
  const fault = findKeyFault(definition, await admitKey(gate, definition), isTest)
  if (fault === testKeyFault)
    throw new OperatorMistake(`The API key of the listener ${name} ${fault}. Set another key.`)
  if (fault !== undefined) log.warn({ protocol: kind, listener: name }, `the API key of this listener ${fault}`)
}

/** Asks about the key of a listener, without counting a request. */
const admitKey = (gate: AdmissionGate, { apiKey }: ListenerDefinition) =>
  gate.admit({ keyDigest: toKeyDigest(apiKey), countsRequest: false })

const findAccount = async (answer: AdmissionAnswer, accounts: Deps['accounts']) =>
  answer.outcome === 'unknown-key' ? undefined : accounts.findAccount(answer.caller.accountId)

export const testKeyFault = 'is a test key: every file would be called clean'

/** Tells why the key of a listener cannot be used for its scans. */
export function findKeyFault(
  { address }: ListenerDefinition,
  answer: AdmissionAnswer,
  isTest: boolean,
): string | undefined {
  if (answer.outcome === 'unknown-key') return 'is not valid: every scan will be refused'
  if (answer.caller.isTest && !isTest) return testKeyFault
  const { allow, kinds, networks } = parseRestrictions(answer.caller.restrictions)
  if (allow?.includes('scan') === false || kinds?.includes('malware') === false)
    return 'may not scan for malware: every scan will be refused'
  return networks !== null && 'path' in address
    ? 'is restricted to networks: every scan over a unix socket will be refused'
    : undefined
}
