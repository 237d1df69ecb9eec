import type { AddressPolicy } from '../scans/web-address.ts'
import { type DownloadTarget, isPlainHttp, readBucketTarget, readHostTarget } from './target.ts'
import { type CredentialValues, checkAccessKey, checkHeaders, type Header } from './values.ts'

/** A credential as people enter it. */
export type EnteredCredential =
  | { kind: 'headers'; host: string; headers: Header[] }
  | {
      kind: 's3'
      bucket: string
      region: string
      endpoint: string | null
      accessKeyId: string
      secretAccessKey: string
    }

type Read = { target: DownloadTarget; values: CredentialValues } | { errors: Record<string, string[]> }

/** Checks a credential. Errors are by field, and contain no value of a secret. */
export function readCredential(entered: EnteredCredential, policy: Pick<AddressPolicy, 'opensNetworks'>): Read {
  const isHost = entered.kind === 'headers'
  const target = isHost
    ? readHostTarget(entered.host)
    : readBucketTarget(entered.bucket, entered.region, entered.endpoint)
  const place = isHost ? 'host' : 'bucket'
  const errors: Record<string, string[]> = {}
  if (typeof target === 'string') errors[place] = [target]
  else if (isPlainHttp(target) && !policy.opensNetworks) {
    errors[place] = [
      'Use https. Over http, credentials go only to networks that the operator opened, and there are none.',
    ]
  }
  const valueErrors = isHost ? checkHeaders(entered.headers) : checkAccessKey(entered)
  if (valueErrors.length > 0) errors[isHost ? 'headers' : 'secret_access_key'] = valueErrors
  if (typeof target === 'string' || Object.keys(errors).length > 0) return { errors }
  return { target, values: toValues(entered) }
}

function toValues(entered: EnteredCredential): CredentialValues {
  if (entered.kind === 's3') {
    return { kind: 's3', accessKeyId: entered.accessKeyId, secretAccessKey: entered.secretAccessKey }
  }
  return { kind: 'headers', headers: entered.headers.map(({ name, value }) => ({ name: name.toLowerCase(), value })) }
}
