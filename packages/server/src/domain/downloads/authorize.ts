import type { Clock } from '../ports/clock.ts'
import type { DownloadAuthorization, FetchRefusal } from '../ports/content-store.ts'
import type { DownloadCredentialStore } from '../ports/download-credential-store.ts'
import { type DownloadTarget, findObjectPath, findTarget, isPlainHttp } from './target.ts'
import type { CredentialValues } from './values.ts'

/** An object of S3 to sign a request for. `path` is decoded. */
export type SignedObject = {
  url: URL
  path: string
  region: string
  accessKeyId: string
  secretAccessKey: string
  at: Date
}

type Deps = {
  credentials: Pick<DownloadCredentialStore, 'list' | 'open'>
  signObject(object: SignedObject): Promise<{ requestTarget: string; headers: Record<string, string> }>
  clock: Clock
}

/** How often a credential is looked for again when it is gone between the list and its values. */
const maxLookups = 5

/**
 * Finds what the account has stored for an address, among its own credentials only. A credential that is stored and
 * cannot be used refuses the download: without it, a host may answer with another page, which would be clean.
 */
export function makeAuthorizeDownload({ credentials, signObject, clock }: Deps) {
  return async (accountId: string, address: string): Promise<DownloadAuthorization | FetchRefusal | undefined> => {
    const url = URL.parse(address)
    for (let lookup = 0; url !== null && lookup < maxLookups; lookup++) {
      const found = findTarget(url, await credentials.list(accountId))
      if (found === undefined) return undefined
      const values = await credentials.open(accountId, found.id)
      // A credential that was removed meanwhile may have been added again, with another id.
      if (values === undefined) continue
      const authorization = values === 'sealed' ? undefined : await toAuthorization(url, found.target, values)
      return authorization ?? refuse('The stored download credential cannot be opened; add it again.')
    }
    return url === null ? undefined : refuse('The stored download credential was replaced too often meanwhile.')
  }

  /** Returns undefined for values that are not of the kind of the target. */
  async function toAuthorization(
    url: URL,
    target: DownloadTarget,
    values: CredentialValues,
  ): Promise<DownloadAuthorization | undefined> {
    const needsOpenedNetwork = isPlainHttp(target)
    if (values.kind === 'headers' && target.kind === 'headers') {
      const headers = Object.fromEntries(values.headers.map(({ name, value }) => [name, value]))
      return { headers, isForOneAddress: false, needsOpenedNetwork }
    }
    const path = target.kind === 's3' ? findObjectPath(url, target) : undefined
    if (values.kind !== 's3' || target.kind !== 's3' || path === undefined) return undefined
    const signed = await signObject({ url, path, region: target.region, ...values, at: clock.now() })
    return { ...signed, isForOneAddress: true, needsOpenedNetwork }
  }
}

const refuse = (reason: string): FetchRefusal => ({ failure: 'DownloadFailed', reason })

export type AuthorizeDownload = ReturnType<typeof makeAuthorizeDownload>
