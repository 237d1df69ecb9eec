import type { AddressPolicy } from '../scans/web-address.ts'
import { isSharedSuffix } from './shared-suffixes.ts'
import {
  type DownloadTarget,
  isAddress,
  isPlainHttp,
  readBucketTarget,
  readHostTarget,
  type UrlStyle,
} from './target.ts'
import { type CredentialValues, checkAccessKey, checkHeaders, type Header } from './values.ts'

/** A credential as people enter it. */
export type EnteredCredential =
  | { kind: 'headers'; host: string; headers: Header[] }
  | {
      kind: 's3'
      bucket: string
      region: string
      endpoint: string | null
      /** The style of an endpoint. AWS knows both styles, so without an endpoint it must be undefined. */
      style: UrlStyle | undefined
      accessKeyId: string
      secretAccessKey: string
    }

type Read = { target: DownloadTarget; values: CredentialValues } | { errors: Record<string, string[]> }

/** Checks a credential. Errors are by field, and contain no value of a secret. */
export function readCredential(entered: EnteredCredential, policy: Pick<AddressPolicy, 'opensNetworks'>): Read {
  const isHost = entered.kind === 'headers'
  const target = isHost
    ? readHostTarget(entered.host)
    : readBucketTarget(entered.bucket, entered.region, entered.endpoint, entered.style)
  const errors: Record<string, string[]> = {}
  const error = typeof target === 'string' ? target : findTargetError(target, policy)
  if (error !== undefined) errors[isHost ? 'host' : 'bucket'] = [error]
  if (!isHost && entered.endpoint === null && entered.style !== undefined) {
    errors.url_style = ['Only an endpoint has a style of URLs. For AWS, URLs of both styles are signed.']
  }
  const valueErrors = isHost ? checkHeaders(entered.headers) : checkAccessKey(entered)
  if (valueErrors.length > 0) errors[isHost ? 'headers' : 'secret_access_key'] = valueErrors
  if (typeof target === 'string' || Object.keys(errors).length > 0) return { errors }
  return { target, values: toValues(entered) }
}

/**
 * Finds why a target may not be stored. The rules hold when a credential is entered; those that are stored stay as they
 * are when a rule changes.
 */
function findTargetError(target: DownloadTarget, policy: Pick<AddressPolicy, 'opensNetworks'>): string | undefined {
  if (isPlainHttp(target) && !policy.opensNetworks) {
    return 'Use https. Over http, credentials go only to networks that the operator opened, and there are none.'
  }
  if (target.kind === 's3' || !target.isWildcard) return undefined
  if (isAddress(target.host)) return 'An IP address cannot have a wildcard.'
  if (!isSharedSuffix(target.host)) return undefined
  return `Hosts below ${target.host} belong to different people. Name the host, or a domain of your own.`
}

function toValues(entered: EnteredCredential): CredentialValues {
  if (entered.kind === 's3') {
    return { kind: 's3', accessKeyId: entered.accessKeyId, secretAccessKey: entered.secretAccessKey }
  }
  return { kind: 'headers', headers: entered.headers.map(({ name, value }) => ({ name: name.toLowerCase(), value })) }
}
