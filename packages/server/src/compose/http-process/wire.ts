import type { ContentNotice } from '../../blobs/remote-content.ts'
import type { Config } from '../../config/load-config.ts'
import type { Account } from '../../domain/accounts/account.ts'
import type { Admitted } from '../../domain/accounts/admission.ts'
import type { Caller } from '../../domain/ports/admission-gate.ts'
import { StorageUnavailable } from '../../domain/ports/content-store.ts'
import { EngineBusy, EngineDown, EngineStarved } from '../../domain/ports/engines.ts'
import { malformed, Problem, type Refusal } from '../../domain/problem.ts'
import type { Scan } from '../../domain/scans/scan.ts'

/** Settings that HTTP processes need. No other one is sent to them: they read requests of strangers. */
const processSettings = [
  'corsOrigins',
  'creditGate',
  'dataDir',
  'diskReserve',
  'logFormat',
  'logLevel',
  'logRequests',
  'maxConnections',
  'outboundAllow',
  'publicUrl',
  'region',
  'tlsCert',
  'tlsKey',
  'trustedProxies',
  'verdictCache',
] as const

type ProcessConfig = Pick<Config, (typeof processSettings)[number]>

export const toProcessConfig = (config: Config): ProcessConfig =>
  Object.fromEntries(processSettings.map((name) => [name, config[name]])) as ProcessConfig

/** The settings that the main process sends to an HTTP process at its start. */
export type ProcessSettings = {
  config: ProcessConfig
  /** The number of HTTP processes, which share connections and memory equally. */
  count: number
  /** Socket of the main process for requests that HTTP processes do not serve. */
  socketPath: string
  /** Content in memory, in bytes. */
  memoryBytes: number
  /** Pictures among them. */
  pictureBytes: number
  /** Whether scans end when their client leaves. */
  endsWithClient: boolean
}

/** The file descriptor of the link in an HTTP process. */
export const linkDescriptor = 4

/** A connection or an order of the main process. */
export type ControlMessage = {
  /** The number of the connection that comes with the message, to be confirmed. */
  connection?: number
  /** Answer with `Connection: close` from now on. */
  stop?: boolean
  /** Close idle connections, and all after this time; then end. */
  drainWithinMs?: number
}

export type ScanCall = { caller: Caller; content: ContentNotice; request: object }
export type UrlCall = { caller: Caller; url: string; request: object }

/** `refused` as JSON can hold it. */
export type WireAdmitted = Omit<Admitted, 'refused'> & { refused?: Refusal | undefined }

export const toWireAdmitted = <T extends Admitted>({ refused, ...rest }: T) => ({ ...rest, refused: refused?.refusal })

export const fromWireAdmitted = <T extends WireAdmitted>({ refused, caller, ...rest }: T) => ({
  ...rest,
  caller: caller && toCaller(caller),
  refused: refused && new Problem(refused),
})

/** JSON turns dates into text; these functions restore them. */
export const toCaller = (caller: Caller): Caller => {
  caller.resetsAt = new Date(caller.resetsAt)
  return caller
}

export const toScan = (scan: Scan): Scan => ({
  ...scan,
  createdAt: new Date(scan.createdAt),
  completedAt: scan.completedAt && new Date(scan.completedAt),
})

export const toAccount = (account: Account): Account => {
  const { period } = account.balance
  return {
    ...account,
    balance: { ...account.balance, period: { start: new Date(period.start), end: new Date(period.end) } },
    createdAt: new Date(account.createdAt),
    expiresAt: account.expiresAt && new Date(account.expiresAt),
    suspendedAt: account.suspendedAt && new Date(account.suspendedAt),
  }
}

type WireError =
  | { refusal: Refusal }
  | { storage: string }
  | { engine: keyof typeof engineErrors; message: string }
  | { message: string; stack: string | undefined }

/** Errors of an engine, the most specific first. */
const engineErrors = { starved: EngineStarved, busy: EngineBusy, down: EngineDown }

/**
 * Passes errors between the processes. `isOutage` recognises those that mean that the database cannot be reached.
 */
export const makeWireErrors = (isOutage: (error: unknown) => boolean) => ({
  toWire: (error: unknown) => toWire(error, isOutage),
  fromWire,
  /** A client that leaves, with its process or alone, is no fault of the service. */
  newAbortReason: () => malformed('The client disconnected before it was answered.'),
})

function toWire(error: unknown, isOutage: (error: unknown) => boolean): WireError {
  if (error instanceof Problem) return { refusal: error.refusal }
  if (isOutage(error)) return { refusal: { kind: 'unavailable', retryAfterSeconds: 5 } }
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  for (const [engine, kind] of Object.entries(engineErrors))
    if (error instanceof kind) return { engine: engine as keyof typeof engineErrors, message }
  return error instanceof StorageUnavailable ? { storage: message } : { message, stack }
}

function fromWire(failure: WireError): Error {
  if ('refusal' in failure) return new Problem(failure.refusal)
  if ('engine' in failure) return new engineErrors[failure.engine](failure.message)
  if ('storage' in failure) return new StorageUnavailable(failure.storage)
  const error = new Error(failure.message)
  if (failure.stack !== undefined) error.stack = failure.stack
  return error
}
