import type { AddDownloadCredential, DownloadCredential as CredentialView } from '@assay/contract/admin'
import { validate as isUuid, v7 as newId } from 'uuid'
import type { Clock } from '../domain/clock.ts'
import { type EnteredCredential, readCredential } from '../domain/downloads/credentials.ts'
import { maxCredentials, showValues, toTargetText } from '../domain/downloads/target.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { DownloadCredentialStore, ShownCredential } from '../domain/ports/secret-store.ts'
import { Problem } from '../domain/problem.ts'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { type Audit, type Call, getAccountId, getId, type Handlers, requireFound } from './call.ts'

export type DownloadHandlerDeps = {
  credentials: DownloadCredentialStore
  accounts: Pick<AccountStore, 'findAccount'>
  policy: AddressPolicy
  clock: Clock
}

type AddCall = Call<'addDownloadCredential' | 'addDownloadCredentialOf'>
type ById = { params: Record<string, string>; audit: Audit }

/** Handlers for the download credentials of accounts, for their owners and for operators. */
export function makeDownloadHandlers(deps: DownloadHandlerDeps) {
  const { credentials } = deps
  return {
    listDownloadCredentials: (call) => list(credentials, getAccountId(call)),
    addDownloadCredential: (call) => add(deps, getAccountId(call), call),
    removeDownloadCredential: (call) => remove(credentials, getAccountId(call), call),
    async listDownloadCredentialsOf(call) {
      const account = requireFound(await deps.accounts.findAccount(getId(call, 'account')), 'account')
      return list(credentials, account.id)
    },
    addDownloadCredentialOf: (call) => add(deps, getId(call, 'account'), call),
    removeDownloadCredentialOf(call) {
      const { account = '' } = call.params
      return remove(credentials, requireFound(isUuid(account) && account, 'account'), call)
    },
  } satisfies Partial<Handlers>
}

const list = async (credentials: DownloadCredentialStore, accountId: string) =>
  (await credentials.show(accountId)).map(toView)

async function add({ credentials, policy, clock }: DownloadHandlerDeps, accountId: string, call: AddCall) {
  const { who, audit, body } = call
  const read = readCredential(toEntered(body), policy)
  if ('errors' in read) throw new Problem({ kind: 'validation', errors: read.errors })
  const stored = await credentials.put(accountId, { id: newId(), ...read, createdBy: who.actor })
  const outcome = requireFound(stored !== 'no-account' && stored, 'account')
  if (outcome === 'full') {
    const detail = `The account has ${maxCredentials} credentials already. Remove one first.`
    throw new Problem({ kind: 'conflict', detail })
  }
  const values = showValues(read.values)
  const names = values.map(({ name }) => name).join(', ')
  const target = toTargetText(read.target)
  await audit('download-credential.add', target, { accountId, detail: names })
  const region = read.target.kind === 's3' ? read.target.region : null
  const shown = { id: outcome.id, target, region, values, createdAt: clock.now(), createdBy: who.actor }
  return { credential: toView(shown), replaced: outcome.isReplaced }
}

/** Reads the form, which is about a host or about a bucket. */
function toEntered(body: AddDownloadCredential): EnteredCredential {
  const { host, bucket } = body
  if ((host === undefined) === (bucket === undefined)) {
    throw new Problem({ kind: 'validation', errors: { host: ['Enter a host or a bucket.'] } })
  }
  if (host !== undefined) return { kind: 'headers', host, headers: (body.headers ?? []).map(trimHeader) }
  return {
    kind: 's3',
    bucket: bucket ?? '',
    region: body.region ?? '',
    endpoint: body.endpoint?.trim() || null,
    style: body.url_style ?? undefined,
    accessKeyId: body.access_key_id?.trim() ?? '',
    secretAccessKey: body.secret_access_key?.trim() ?? '',
  }
}

/** People paste values with blanks and line ends around them. */
const trimHeader = ({ name, value }: { name: string; value: string }) => ({ name: name.trim(), value: value.trim() })

async function remove(credentials: DownloadCredentialStore, accountId: string, call: ById) {
  const target = requireFound(await credentials.remove(accountId, getId(call, 'download credential')), 'credential')
  await call.audit('download-credential.remove', target, { accountId })
}

const toView = (credential: ShownCredential): CredentialView => ({
  id: credential.id,
  kind: credential.region === null ? 'headers' : 's3',
  target: credential.target,
  region: credential.region,
  values: credential.values,
  created_at: credential.createdAt.toISOString(),
  created_by: credential.createdBy,
})
