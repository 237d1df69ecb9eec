import type { ScanKind } from '@assay/contract'
import { type ContentNotice, newRemoteContent } from '../../blobs/remote-content.ts'
import type { Config } from '../../config/load-config.ts'
import type { Account } from '../../domain/accounts/account.ts'
import type { Admitted } from '../../domain/accounts/admission.ts'
import type { Content } from '../../domain/content/content.ts'
import type { AccountStore } from '../../domain/ports/account-store.ts'
import type { AdmissionCall, AdmissionGate, Caller } from '../../domain/ports/admission-gate.ts'
import { type JobContent, type JobContents, StorageUnavailable } from '../../domain/ports/content-store.ts'
import { EngineBusy, EngineDown, EngineStarved } from '../../domain/ports/engines.ts'
import { malformed, Problem, type Refusal } from '../../domain/problem.ts'
import type { Receipts } from '../../domain/receipts.ts'
import type { Scan } from '../../domain/scans/scan.ts'
import type { Owner, Scanning, ScanRequest } from '../../domain/scans/scanning.ts'
import type { JobRequest, Submitting } from '../../domain/scans/submitting.ts'
import type { StrangerLimit } from '../../http/admission.ts'
import type { Link, Message } from '../../runtime/link.ts'

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

type ScanCall = { caller: Caller; content: ContentNotice; request: object }
type UrlCall = { caller: Caller; url: string; request: object }

/** `refused` as JSON can hold it. */
export type WireAdmitted = Omit<Admitted, 'refused'> & { refused?: Refusal | undefined }

const toWireAdmitted = <T extends Admitted>({ refused, ...rest }: T) => ({ ...rest, refused: refused?.refusal })

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

export type CallDeps = {
  gate: AdmissionGate
  accounts: Pick<AccountStore, 'findAccount'>
  scanning: Scanning
  receipts: Pick<Receipts, 'getScan'>
  submitting: Submitting
  jobContents: JobContents
  /** Whether workers on other nodes scan the content, which must be stored where they can read it. */
  scansRemotely: boolean
  wrongKeys: Pick<StrangerLimit, 'refuseTooMany'>
  countRejectedRequest(accountId: string, status: number): void
}

type ResultCall = { owner: Owner; kind: ScanKind; id: string; waitMs: number; withReceipt: boolean }
type Context = { body: Buffer | undefined; readonly signal: AbortSignal }

/** Makes the functions of the main process that an HTTP process calls: each is one function of the domain. */
export function makeCallHandlers(deps: CallDeps, getLink: () => Link) {
  const open = ({ content }: ScanCall, { body }: Context) =>
    newRemoteContent(content, body, {
      read: async (value) => (await getLink().call('read', { value })).body ?? empty,
      sendToClamd: async (value, signal) => String((await getLink().call('sendToClamd', { value }, signal)).value),
    })

  return {
    admit: async (call: AdmissionCall): Promise<Message> => ({ value: await deps.gate.admit(call) }),
    async refuseWrongKey(address: string): Promise<undefined> {
      await deps.wrongKeys.refuseTooMany(address)
    },
    async findAccount(accountId: string): Promise<Message> {
      return { value: await deps.accounts.findAccount(accountId) }
    },
    async getScan({ owner, kind, id, waitMs, withReceipt }: ResultCall, context: Context): Promise<Message> {
      const options = waitMs > 0 ? { waitMs, signal: context.signal } : {}
      // The receipt is signed here: HTTP processes get neither the key nor anything of their choice signed.
      const { getScan } = withReceipt ? deps.receipts : deps.scanning
      return { value: await getScan(owner, kind, id, options) }
    },
    async scanNow(value: ScanCall, context: Context): Promise<Message> {
      const request = value.request as ScanRequest
      const caller = toCaller(value.caller)
      const remote = open(value, context)
      if (request.kind === 'nsfw_image') await remote.load?.()
      request.abortWhenClientLeaves = () => context.signal
      const scan = (content: Content) => deps.scanning.scanNow(caller, content, request)
      return { value: toWireAdmitted(await (deps.scansRemotely ? withStored(remote, caller, scan) : scan(remote))) }
    },
    async scanUrlNow({ caller, url, request }: UrlCall, { signal }: Context): Promise<Message> {
      const scanned = await deps.scanning.scanUrlNow(toCaller(caller), url, request as ScanRequest, signal)
      return { value: toWireAdmitted(scanned) }
    },
    async submitFile(value: ScanCall, context: Context): Promise<Message> {
      const caller = toCaller(value.caller)
      return withStored(open(value, context), caller, async (content) => ({
        value: toWireAdmitted(await deps.submitting.submitFile(caller, content, value.request as JobRequest)),
      }))
    },
    async submitUrl({ caller, url, request }: UrlCall): Promise<Message> {
      return { value: toWireAdmitted(await deps.submitting.submitUrl(toCaller(caller), url, request as JobRequest)) }
    },
    countRejectedRequest({ accountId, status }: { accountId: string; status: number }): undefined {
      deps.countRejectedRequest(accountId, status)
    },
  }

  /** Copies the content to the storage of job content for as long as `use` runs. */
  async function withStored<T>(
    remote: Content,
    { accountId }: Caller,
    use: (content: JobContent) => Promise<T>,
  ): Promise<T> {
    const writer = deps.jobContents.newWriter({ expectedBytes: remote.bytes, accountId })
    try {
      for await (const piece of remote.read()) await writer.write(Buffer.from(piece))
      const content = await writer.finish()
      if (content.sha256 !== remote.sha256) throw new Error('The content has changed on its way')
      return await use(content)
    } finally {
      await writer.abort()
    }
  }
}

const empty = Buffer.alloc(0)
