import type { ScanKind } from '@assay/contract'
import { newRemoteContent } from '../../blobs/remote-content.ts'
import type { Content } from '../../domain/content/content.ts'
import type { AccountStore } from '../../domain/ports/account-store.ts'
import type { AdmissionCall, AdmissionGate, Caller } from '../../domain/ports/admission-gate.ts'
import type { JobContent, JobContents } from '../../domain/ports/content-store.ts'
import type { Receipts } from '../../domain/receipts/receipts.ts'
import type { Owner, Scanning, ScanRequest } from '../../domain/scans/scanning.ts'
import type { JobRequest, Submitting } from '../../domain/scans/submitting.ts'
import type { StrangerLimit } from '../../http/strangers.ts'
import type { Link, Message } from '../../runtime/link.ts'
import { type ScanCall, toCaller, toWireAdmitted, type UrlCall } from './wire.ts'

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
