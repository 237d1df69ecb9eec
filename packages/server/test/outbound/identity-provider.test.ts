import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { IdentityError, type IdentityProvider } from '../../src/domain/ports/member-store.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { makeIdentityProvider, makeIssuerFetch } from '../../src/outbound/identity-provider.ts'

const clientId = 'assay'
const secrets = { state: 'the-state', nonce: 'the-nonce', verifier: 'v'.repeat(43) }
const answer = { code: 'the-code', state: secrets.state }
const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })

type Claims = Record<string, unknown>
type Token = { claims: Claims; header?: object; key?: KeyObject; hmac?: string }

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function toJwt({ claims, header = { alg: 'RS256', kid: 'own' }, key = own.privateKey, hmac }: Token): string {
  const text = `${encode(header)}.${encode(claims)}`
  if ('alg' in header && header.alg === 'none') return `${text}.`
  const signature =
    hmac === undefined ? sign('sha256', Buffer.from(text), key) : createHmac('sha256', hmac).update(text).digest()
  return `${text}.${signature.toString('base64url')}`
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

/** An issuer that answers whatever a test wants; the honest one of the acceptance tests cannot. */
describe('an issuer that lies', () => {
  let server: Server
  let issuer: string
  let metadata: Claims
  let token: Token
  let userInfo: Claims
  let requests: string[]
  let isDown: boolean
  before(async () => {
    server = createServer(async (request, response) => {
      const body = await readText(request)
      requests.push(`${request.method} ${request.url}`)
      const send = (value: unknown, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
      if (isDown) return send({}, 503)
      switch (request.url) {
        case '/.well-known/openid-configuration':
          return send(metadata)
        case '/token':
          if (new URLSearchParams(body).get('code_verifier') !== secrets.verifier) {
            return send({ error: 'invalid_grant' }, 400)
          }
          return send({ access_token: 'access', token_type: 'Bearer', id_token: toJwt(token) })
        case '/jwks':
          return send({ keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'RS256', use: 'sig' }] })
        case '/userinfo':
          return send(userInfo)
        default:
          return response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
      }
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => server.close())

  function makeProvider(more: Claims = {}): IdentityProvider {
    requests = []
    isDown = false
    metadata = {
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      userinfo_endpoint: `${issuer}/userinfo`,
      id_token_signing_alg_values_supported: ['RS256'],
      ...more,
    }
    token = { claims: newClaims() }
    userInfo = { sub: 'ada', email: 'ada@example.com', email_verified: true, groups: ['staff'] }
    const policy = makeAddressPolicy([])
    return makeIdentityProvider({
      issuer,
      clientId,
      clientSecret: 'a secret',
      scopes: ['openid'],
      redirectUri: 'https://scan.example.com/console/sso',
      signedOutUri: 'https://scan.example.com/console/sign-in',
      claims: ['email', 'groups'],
      fetch: makeIssuerFetch({ issuer: new URL(issuer), policy, agent: makeGuardedAgent({ policy }) }),
    })
  }

  function newClaims(more: Claims = {}): Claims {
    const now = Math.floor(Date.now() / 1000)
    return { iss: issuer, aud: clientId, sub: 'ada', nonce: secrets.nonce, iat: now, exp: now + 300, ...more }
  }

  const isRefused = (error: unknown) => error instanceof IdentityError && !error.isUnreachable
  const isUnreachable = (error: unknown) => error instanceof IdentityError && error.isUnreachable

  test('a good token is accepted, with the claims of the userinfo endpoint', async () => {
    const provider = makeProvider()
    const { subject, email, isEmailVerified, claims } = await provider.identify(answer, secrets)
    assert.deepEqual([subject, email, isEmailVerified, claims.groups], ['ada', 'ada@example.com', true, ['staff']])
  })

  test('a token that is not for this sign-in, or not of this issuer, is refused', async () => {
    const provider = makeProvider()
    const now = Math.floor(Date.now() / 1000)
    const wrong: [string, Token][] = [
      ['another issuer', { claims: newClaims({ iss: 'https://login.example.org' }) }],
      ['another client', { claims: newClaims({ aud: 'other' }) }],
      ['another nonce', { claims: newClaims({ nonce: 'x' }) }],
      ['no nonce', { claims: newClaims({ nonce: undefined }) }],
      ['expired', { claims: newClaims({ exp: now - 3600, iat: now - 7200 }) }],
      ['no subject', { claims: newClaims({ sub: undefined }) }],
      ['another key', { claims: newClaims(), key: foreign.privateKey }],
      ['an unknown key id', { claims: newClaims(), header: { alg: 'RS256', kid: 'x' }, key: foreign.privateKey }],
      ['no signature', { claims: newClaims(), header: { alg: 'none' } }],
      [
        'the public key as a secret',
        {
          claims: newClaims(),
          header: { alg: 'HS256', kid: 'own' },
          hmac: String(own.publicKey.export({ type: 'spki', format: 'pem' })),
        },
      ],
    ]
    for (const [about, forged] of wrong) {
      token = forged
      await assert.rejects(provider.identify(answer, secrets), isRefused, about)
    }
  })

  test('the userinfo of another person is refused', async () => {
    const provider = makeProvider()
    userInfo = { sub: 'mallory', email: 'ada@example.com', email_verified: true }
    await assert.rejects(provider.identify(answer, secrets), isRefused)
  })

  test('an address of the token is not verified by what userinfo says of another one', async () => {
    const provider = makeProvider()
    token = { claims: newClaims({ email: 'mallory@example.com', email_verified: false }) }
    assert.equal((await provider.identify(answer, secrets)).isEmailVerified, false)
  })

  test('a wrong state or verifier is refused', async () => {
    const provider = makeProvider()
    await assert.rejects(provider.identify({ ...answer, state: 'x' }, secrets), isRefused)
    await assert.rejects(provider.identify(answer, { ...secrets, verifier: 'w'.repeat(43) }), isRefused)
    await assert.rejects(provider.identify({ ...answer, iss: 'https://login.example.org' }, secrets), isRefused)
  })

  test('metadata of another issuer are not used', async () => {
    const fault = await makeProvider({ issuer: 'https://login.example.org' }).findFault()
    assert.match(fault ?? '', /^The issuer http:\/\/127\.0\.0\.1:\d+ cannot be used: /)
  })

  test('metadata lead browsers to web pages only, and the service to no other internal host', async () => {
    const script = makeProvider({ authorization_endpoint: 'javascript:alert(1)' })
    await assert.rejects(script.toSignInUrl(secrets), isUnreachable)
    // The operator chose the host of the issuer. Another port of the same machine is another host.
    const other = makeProvider({ token_endpoint: 'http://127.0.0.1:1/token' })
    await assert.rejects(other.identify(answer, secrets), /not public/)
    const redirecting = makeProvider({ token_endpoint: `${issuer}/elsewhere` })
    await assert.rejects(redirecting.identify(answer, secrets), isRefused)
    assert(requests.includes('POST /elsewhere'))
  })

  test('an issuer that stops to answer is noticed, and one that answers again as well', async ({ mock }) => {
    let passedMs = 0
    const readClock = performance.now.bind(performance)
    mock.method(performance, 'now', () => readClock() + passedMs)
    const provider = makeProvider()
    assert.equal(await provider.findLastFault(), undefined)
    isDown = true
    for (let n = 0; n < 5; n++) assert.equal(await provider.findLastFault(), undefined)
    assert.equal(requests.length, 1)
    passedMs += 60_000
    await waitUntil('the fault is noticed', async () => (await provider.findLastFault()) !== undefined)
    assert.equal(requests.length, 2)
    // The old metadata still serve sign-ins.
    assert.match(await provider.toSignInUrl(secrets), /\/auth\?/)
    isDown = false
    passedMs += 10_000
    await waitUntil('the end is noticed', async () => (await provider.findLastFault()) === undefined)
    assert.equal(requests.length, 3)
  })

  test('an issuer that is down is asked again only after a while', async () => {
    const provider = makeProvider({ issuer: 'https://login.example.org' })
    for (let n = 0; n < 5; n++) assert.notEqual(await provider.findFault(), undefined)
    assert.equal(requests.length, 1)
  })
})
