import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Configuration, CustomFetch } from 'openid-client'
import {
  type Identity,
  IdentityError,
  type IdentityProvider,
  type IssuerAnswer,
  type SignInSecrets,
} from '../domain/ports/member-store.ts'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { version } from '../runtime/process.ts'
import { makeResolveName } from './dial.ts'
import { type GuardedAgent, makeGuardedAgent } from './guarded-agent.ts'
import { OutboundError, withinTime } from './outbound-error.ts'

type Deps = {
  issuer: string
  clientId: string
  clientSecret: string | undefined
  scopes: string[]
  /** The pages of the console to which the issuer sends people after they signed in and signed out. */
  redirectUri: string
  signedOutUri: string
  /** Claims that are asked for at the userinfo endpoint if the ID token lacks them. */
  claims: string[]
  fetch: ReturnType<typeof makeIssuerFetch>
}

type Library = typeof import('openid-client')
type Claims = Record<string, unknown>
type Client = { library: Library; configuration: Configuration }

const metadataMs = 3_600_000
/** An issuer that answered is asked again for the sign-in page after this time. */
const checkMs = 60_000
/** An issuer that is down is asked again after this time, however often people open the sign-in page. */
const failureMs = 10_000

/** Signs people in at an OpenID Connect issuer: authorization code flow with PKCE, state and nonce. */
export function makeIdentityProvider(deps: Deps): IdentityProvider {
  const client = makeClient(deps)
  return {
    issuer: deps.issuer,
    async toSignInUrl({ state, nonce, verifier }) {
      const { library, configuration } = await client.get()
      try {
        const url = library.buildAuthorizationUrl(configuration, {
          redirect_uri: deps.redirectUri,
          scope: [...new Set(['openid', ...deps.scopes])].join(' '),
          code_challenge: await library.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          state,
          nonce,
        })
        return url.href
      } catch (error) {
        throw new IdentityError(`The metadata of the issuer are wrong: ${toIdentityError(error).message}`, {
          isUnreachable: true,
          cause: error,
        })
      }
    },
    async identify(answer, secrets) {
      const found = await client.get()
      try {
        return await exchange(deps, found, answer, secrets)
      } catch (error) {
        throw toIdentityError(error)
      }
    },
    findSignOutUrl() {
      const endpoint = client.find()?.configuration.serverMetadata().end_session_endpoint
      const url = endpoint === undefined ? null : URL.parse(endpoint)
      if (url === null || !isWebPage(url, deps.issuer)) return undefined
      url.searchParams.set('client_id', deps.clientId)
      url.searchParams.set('post_logout_redirect_uri', deps.signedOutUri)
      return url.href
    },
    findFault: () => client.get().then(() => undefined, toFault),
    async findLastFault() {
      const asked = client.get(checkMs).then(() => undefined, toFault)
      const isAnswered = client.find() !== undefined || client.findFailure() !== undefined
      return isAnswered ? client.findFailure()?.message : asked
    },
  }
}

function toFault(error: unknown): string {
  if (error instanceof IdentityError) return error.message
  throw error
}

/**
 * Reads the metadata of the issuer when they are first needed, and again when they are too old, by default after an
 * hour. While the issuer is down, the old ones are used. A failure is known until the issuer answers again.
 */
function makeClient(deps: Deps) {
  let current: (Client & { at: number }) | undefined
  let failure: { error: IdentityError; at: number } | undefined
  let discovery: Promise<Client> | undefined

  return { find: () => current, findFailure: () => failure?.error, get: getClient }

  async function getClient(maxAgeMs = metadataMs): Promise<Client> {
    const now = performance.now()
    if (current !== undefined && now - current.at < maxAgeMs) return current
    const isKnownToFail = failure !== undefined && now - failure.at < failureMs
    if (!isKnownToFail) {
      discovery ??= discover(deps).finally(() => {
        discovery = undefined
      })
      try {
        current = { ...(await discovery), at: now }
        failure = undefined
        return current
      } catch (error) {
        const reason = toIdentityError(error).message.replace(/\.$/, '')
        const message = `The issuer ${deps.issuer} cannot be used: ${reason}.`
        failure = { error: new IdentityError(message, { isUnreachable: true, cause: error }), at: now }
      }
    }
    if (current !== undefined) return current
    throw failure?.error
  }
}

async function discover({ issuer, clientId, clientSecret, fetch }: Deps): Promise<Client> {
  // The library is loaded with the first sign-in, so that a start does not wait for it.
  const library = await import('openid-client')
  const authenticate = clientSecret === undefined ? library.None() : authenticateClient(library, clientSecret)
  const isLocal = issuer.startsWith('http:')
  const configuration = await library.discovery(new URL(issuer), clientId, undefined, authenticate, {
    [library.customFetch]: fetch as CustomFetch,
    // Without these checks, the library trusts the TLS connection over which an ID token came and not its signature.
    execute: isLocal
      ? [library.enableNonRepudiationChecks, library.allowInsecureRequests]
      : [library.enableNonRepudiationChecks],
  })
  return { library, configuration }
}

async function exchange(
  { redirectUri, claims }: Deps,
  { library, configuration }: Client,
  answer: IssuerAnswer,
  { state, nonce, verifier }: SignInSecrets,
): Promise<Identity> {
  const url = new URL(redirectUri)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  const tokens = await library.authorizationCodeGrant(configuration, url, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const verified = tokens.claims()
  if (verified === undefined) throw new IdentityError('the issuer sent no ID token', { isUnreachable: false })
  const own: Claims = verified
  const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
  const isComplete = claims.every((name) => own[name] !== undefined)
  const more: Claims =
    isComplete || !hasUserInfo ? {} : await library.fetchUserInfo(configuration, tokens.access_token, verified.sub)
  return toIdentity(verified.iss, verified.sub, own, more)
}

/** The address and whether it is verified come from the same document, because they belong together. */
function toIdentity(issuer: string, subject: string, own: Claims, more: Claims): Identity {
  const source = typeof own.email === 'string' && own.email_verified !== undefined ? own : more
  const claims = { ...more, ...own }
  return {
    issuer,
    subject,
    email: typeof source.email === 'string' ? source.email : undefined,
    isEmailVerified: source.email_verified === true,
    name: typeof claims.name === 'string' ? claims.name : undefined,
    claims,
  }
}

/** Basic authentication is the default of the specification; some issuers take the secret only in the body. */
function authenticateClient(library: Library, secret: string): ReturnType<Library['ClientSecretBasic']> {
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = server
    const method = methods.includes('client_secret_basic') ? library.ClientSecretBasic : library.ClientSecretPost
    return method(secret)(server, ...rest)
  }
}

/** The browser of the person opens the address: metadata must not make it run a script. */
const isWebPage = ({ protocol }: URL, issuer: string) =>
  protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))

function toIdentityError(error: unknown): IdentityError {
  if (error instanceof IdentityError) return error
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof OutboundError) return new IdentityError(cause.message, { isUnreachable: true, cause: error })
  }
  const { message = String(error), error: code, code: libraryCode } = error as Error & { error?: string; code?: string }
  // Texts of the issuer, such as error_description, are left out: a link to the console could contain them.
  const says = code !== undefined && /^[\w-]{1,60}$/.test(code) ? `the issuer answered ${code}` : message
  return new IdentityError(libraryCode === undefined ? says : `${says} (${libraryCode})`, {
    isUnreachable: false,
    cause: error,
  })
}

const requestMs = 10_000
/** Metadata, keys and tokens are far smaller. */
const maxResponseBytes = 1024 * 1024

type Init = { method?: string; headers?: Record<string, string>; body?: unknown }

/**
 * A fetch for the issuer of single sign-on. The operator chose its host, which is often internal, so that any address is
 * allowed for it. Other hosts, which only its metadata names, must pass the policy of outbound requests. Addresses that
 * the policy allows are called through the proxy, others directly. Redirects are not followed.
 */
export function makeIssuerFetch(deps: { issuer: URL; policy: AddressPolicy; agent: GuardedAgent }) {
  const { issuer, policy, agent } = deps
  const resolve = makeResolveName()
  const direct = makeGuardedAgent({ policy: { ...policy, isAllowed: () => true } })

  return async (address: string, { method = 'GET', headers = {}, body }: Init = {}): Promise<Response> => {
    const url = new URL(address)
    const sentence = `${url.host} did not answer within ${requestMs / 1000} seconds.`
    const limit = { ms: requestMs, signal: new AbortController().signal, sentence }
    return await withinTime(limit, async (signal) => {
      const request = {
        url,
        method: method === 'POST' ? ('POST' as const) : ('GET' as const),
        headers: { 'user-agent': `Assay/${version}`, ...headers },
        ...(body === undefined || body === null ? {} : { body: Buffer.from(String(body)) }),
      }
      return await ((await isInternal(url, signal)) ? direct : agent).exchange(request, signal, toResponse)
    })
  }

  async function isInternal(url: URL, signal: AbortSignal): Promise<boolean> {
    if (url.host !== issuer.host) return false
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = isIP(host) === 0 ? await resolve(host, signal) : [host]
    return !addresses.every(policy.isAllowed)
  }
}

async function toResponse(response: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxResponseBytes) throw new OutboundError('The response of the issuer is too large.')
    chunks.push(chunk)
  }
  const { statusCode: status = 500 } = response
  const type = response.headers['content-type']
  const hasBody = status !== 204 && status !== 304
  return new Response(hasBody ? Buffer.concat(chunks) : null, {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  })
}
