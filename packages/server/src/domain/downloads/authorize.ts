import type { Clock } from '../ports/clock.ts'
import type { DownloadAuthorization } from '../ports/content-store.ts'
import type { DownloadCredentialStore } from '../ports/download-credential-store.ts'
import { findObjectPath, findTarget, isPlainHttp } from './target.ts'

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

/** Finds what the account has stored for an address, among its own credentials only. */
export const makeAuthorizeDownload =
  ({ credentials, signObject, clock }: Deps) =>
  async (accountId: string, address: string): Promise<DownloadAuthorization | undefined> => {
    const stored = await credentials.list(accountId)
    const url = URL.parse(address)
    const found = url === null ? undefined : findTarget(url, stored)
    if (url === null || found === undefined) return undefined
    const values = await credentials.open(accountId, found.id)
    if (values === undefined) return undefined
    const { target } = found
    const needsOpenedNetwork = isPlainHttp(target)
    if (values.kind === 'headers' && target.kind === 'headers') {
      const headers = Object.fromEntries(values.headers.map(({ name, value }) => [name, value]))
      return { headers, isForOneAddress: false, needsOpenedNetwork }
    }
    const path = target.kind === 's3' ? findObjectPath(url, target) : undefined
    if (values.kind !== 's3' || target.kind !== 's3' || path === undefined) {
      throw new Error('The values of a download credential are not of its kind')
    }
    const signed = await signObject({ url, path, region: target.region, ...values, at: clock.now() })
    return { ...signed, isForOneAddress: true, needsOpenedNetwork }
  }

export type AuthorizeDownload = ReturnType<typeof makeAuthorizeDownload>
