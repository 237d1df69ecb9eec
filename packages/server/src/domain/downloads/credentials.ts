import type { Clock } from '../clock.ts'
import type { DownloadAuthorization, FetchRefusal } from '../ports/content-store.ts'
import type { DownloadCredentialStore } from '../ports/secret-store.ts'
import type { AddressPolicy } from '../scans/web-address.ts'
import {
  type CredentialValues,
  checkAccessKey,
  checkHeaders,
  type DownloadTarget,
  findObjectPath,
  findTarget,
  type Header,
  isAddress,
  isPlainHttp,
  readBucketTarget,
  readHostTarget,
  type UrlStyle,
} from './target.ts'

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
      return authorization ?? newRefusal('The stored download credential cannot be opened; add it again.')
    }
    return url === null ? undefined : newRefusal('The stored download credential was replaced too often meanwhile.')
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

const newRefusal = (reason: string): FetchRefusal => ({ failure: 'DownloadFailed', reason })

export type AuthorizeDownload = ReturnType<typeof makeAuthorizeDownload>

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

type CheckedCredential = { target: DownloadTarget; values: CredentialValues } | { errors: Record<string, string[]> }

/** Checks a credential. Errors are by field, and contain no value of a secret. */
export function readCredential(
  entered: EnteredCredential,
  policy: Pick<AddressPolicy, 'opensNetworks'>,
): CheckedCredential {
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

/** Labels below a country that registries sell names under, as in `co.uk`. */
const registryLabels = toSet(
  'ac asn co com coop edu firm gen go gob gouv gov gv id ind info int ltd me mil ne net nhs nom or org plc sch web',
)

/** Domains below which anyone can get a host: hosting, dynamic DNS, tunnels, names that are sold below a domain. */
const sharedDomains = toSet(`
  cloudfront.net awsapprunner.com amplifyapp.com azurewebsites.net azurefd.net azureedge.net
  cloudapp.net azurestaticapps.net web.app firebaseapp.com cloudfunctions.net hf.space synology.me myqnapcloud.com
  googleusercontent.com blogspot.com translate.goog ondigitalocean.app r2.dev workers.dev pages.dev trycloudflare.com
  r2.cloudflarestorage.com cloudflarestorage.com ts.net ovh.net
  github.io githubusercontent.com gitlab.io gitpod.io github.dev bitbucket.io netlify.app vercel.app now.sh herokuapp.com
  onrender.com fly.dev surge.sh glitch.me repl.co replit.dev deno.dev readthedocs.io
  loca.lt serveo.net localhost.run
  duckdns.org dyndns.org no-ip.org no-ip.com ddns.net hopto.org zapto.org dynu.net freeddns.org sytes.net myftp.org
  nip.io sslip.io xip.io wordpress.com wixsite.com weebly.com squarespace.com myshopify.com zendesk.com sharepoint.com
  fastly.net akamaized.net akamaihd.net edgekey.net b-cdn.net cdn77.org
  eu.org us.com uk.com uk.net de.com eu.com gb.net jpn.com br.com cn.com ru.com za.com co.com in.net
`)

/** Domains of clouds and tunnels that give out names on several levels, such as `s3.eu-central-1.amazonaws.com`. */
const clouds = toSet(`
  amazonaws.com amazonaws.com.cn core.windows.net cloudapp.azure.com googleapis.com oraclecloud.com aliyuncs.com
  myqcloud.com digitaloceanspaces.com linodeobjects.com vultrobjects.com backblazeb2.com wasabisys.com scw.cloud
  your-objectstorage.com elasticbeanstalk.com on.aws azurecontainerapps.io appspot.com run.app railway.app
  ngrok.io ngrok.app ngrok.dev ngrok-free.app ngrok-free.dev
`)

/**
 * Whether hosts below a name belong to different people, so that a wildcard there would give a credential to strangers.
 * Covers top-level domains, the usual second level of countries, and large providers. This is not the Public Suffix
 * List, which changes weekly: the documents tell people to name hosts where they can.
 */
function isSharedSuffix(domain: string): boolean {
  const labels = domain.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  if (labels.length < 2 || (labels.length === 2 && top.length === 2 && registryLabels.has(second))) return true
  if (sharedDomains.has(domain) || labels.some((_, i) => clouds.has(labels.slice(i).join('.')))) return true
  // A wildcard for windows.net would contain all hosts below core.windows.net.
  return [...sharedDomains, ...clouds].some((shared) => shared.endsWith(`.${domain}`))
}

function toSet(words: string): Set<string> {
  return new Set(words.trim().split(/\s+/))
}
