import type { makeSharedContents } from '../../blobs/remote-content.ts'
import type { Account } from '../../domain/accounts/account.ts'
import { type CreditGate, makeAdmission, makeRecentCallers } from '../../domain/accounts/admission.ts'
import type { Content } from '../../domain/content/content.ts'
import type { Describer } from '../../domain/content/media-type.ts'
import type { AdmissionAnswer, AdmissionGate, Caller } from '../../domain/ports/admission-gate.ts'
import type { Scan } from '../../domain/scans/scan.ts'
import type { AdmittedScan, Scanning } from '../../domain/scans/scanning.ts'
import type { Submitted, Submitting } from '../../domain/scans/submitting.ts'
import type { V1Deps } from '../../http/v1.ts'
import type { Link } from '../../runtime/link.ts'
import { fromWireAdmitted, toAccount, toCaller, toScan, type WireAdmitted } from './wire.ts'

type Deps = {
  link: Pick<Link, 'call'>
  shared: ReturnType<typeof makeSharedContents>
  describe: Describer
  creditGate: CreditGate
  /** Whether scans end when their client leaves. */
  endsWithClient: boolean
}

type RemoteUseCases = Pick<
  V1Deps<Content>,
  'admission' | 'wrongKeys' | 'accounts' | 'scanning' | 'receipts' | 'submitting'
>

/** Makes the use cases of the HTTP interface, which the main process does. Content is described here and stays here. */
export function makeRemoteUseCases({ link, shared, describe, creditGate, endsWithClient }: Deps): RemoteUseCases {
  const gate: AdmissionGate = {
    async admit(call) {
      const answer = (await link.call('admit', { value: call })).value as AdmissionAnswer
      if ('caller' in answer) toCaller(answer.caller)
      return answer
    },
  }
  const recentCallers = makeRecentCallers()

  /** The answer to a scan may tell that the caller has little left, or is not known any more. */
  const noteCaller = <T extends WireAdmitted>(keyDigest: string, answer: T) => {
    recentCallers.note(keyDigest, answer.caller)
    return fromWireAdmitted(answer)
  }

  async function callWithContent(
    name: string,
    caller: Caller,
    content: Content,
    request: object,
    signal?: AbortSignal,
  ) {
    const description = await describe(content, caller.accountId)
    return shared.share(content, description, async (notice, body) => {
      const { value } = await link.call(name, { value: { caller, content: notice, request }, body }, signal)
      return noteCaller(caller.keyDigest, value as WireAdmitted)
    })
  }

  async function callWithUrl(name: string, caller: Caller, url: string, request: object, signal?: AbortSignal) {
    const { value } = await link.call(name, { value: { caller, url, request } }, signal)
    return noteCaller(caller.keyDigest, value as WireAdmitted)
  }

  const makeGetScan =
    (withReceipt: boolean): Scanning['getScan'] =>
    async (owner, kind, id, { waitMs = 0, signal } = {}) => {
      const { accountId, isTest } = owner
      const call = { owner: { accountId, isTest }, kind, id, waitMs, withReceipt }
      const { value } = await link.call('getScan', { value: call }, signal)
      return toScan(value as Scan)
    }

  const scanning: Scanning = {
    getScan: makeGetScan(false),
    async scanNow(caller, content, { abortWhenClientLeaves, ...request }) {
      const signal = endsWithClient ? abortWhenClientLeaves?.() : undefined
      return toAdmittedScan(await callWithContent('scanNow', caller, content, request, signal))
    },
    scanUrlNow: async (caller, url, request, signal) =>
      toAdmittedScan(await callWithUrl('scanUrlNow', caller, url, request, signal)),
  }
  const submitting: Submitting<Content> = {
    submitFile: async (caller, content, request) =>
      (await callWithContent('submitFile', caller, content, request)) as Submitted,
    submitUrl: async (caller, url, request) => (await callWithUrl('submitUrl', caller, url, request)) as Submitted,
  }
  return {
    admission: makeAdmission({ gate: recentCallers.watch(gate), creditGate, recentCallers }),
    wrongKeys: {
      async refuseTooMany(address) {
        await link.call('refuseWrongKey', { value: address })
      },
    },
    accounts: {
      async findAccount(accountId) {
        const { value } = await link.call('findAccount', { value: accountId })
        return value === null ? undefined : toAccount(value as Account)
      },
    },
    scanning,
    receipts: { getScan: makeGetScan(true) },
    submitting,
  }
}

function toAdmittedScan(answer: object): AdmittedScan {
  const admitted = answer as AdmittedScan
  return { ...admitted, scan: toScan(admitted.scan) }
}
