import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

type Claims = Record<string, unknown>

/** A person at the issuer signs in with this name and any password. */
type People = Map<string, Claims>

export const clientId = 'assay'
export const clientSecret = 'a secret of the client'

/** A real OpenID Connect issuer for tests, with the sign-in pages that oidc-provider brings. */
export async function openIssuer(serviceUrl: string) {
  const people: People = new Map()
  const server = createServer((request, response) => handle(request, response))
  let handle: ReturnType<Provider['callback']> = async () => {}
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // Another site than 127.0.0.1 for browsers, so that they treat the cookies of the service as those of another site.
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${serviceUrl}/console/sso`],
        post_logout_redirect_uris: [`${serviceUrl}/console/sign-in`],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of this test'] },
  })
  handle = provider.callback()

  return {
    url,
    people,
    /** Signs in at the issuer as a browser does, and returns the parameters with which it sends the browser back. */
    signIn: (address: string, login: string) => followPages(address, login, `${serviceUrl}/console/sso?`),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export type Issuer = Awaited<ReturnType<typeof openIssuer>>

/** Fills the pages of the issuer, first that for the name and then that for the consent. */
async function followPages(start: string, login: string, end: string): Promise<Record<string, string>> {
  const cookies = new Map<string, string>()
  let address = start
  let form: URLSearchParams | undefined
  for (let step = 0; step < 12; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(address, {
      redirect: 'manual',
      headers: { cookie },
      ...(form === undefined ? {} : { method: 'POST', body: form }),
    })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const text = await answer.text()
    const location = answer.headers.get('location')
    if (location !== null) {
      address = new URL(location, address).href
      form = undefined
      if (address.startsWith(end)) return Object.fromEntries(new URL(address).searchParams)
    } else {
      const [, action] = /<form[^>]* action="([^"]+)"/.exec(text) ?? []
      if (action === undefined) throw new Error(`The issuer answered ${answer.status}: ${text.slice(0, 500)}`)
      address = new URL(action, address).href
      form = new URLSearchParams({ prompt: text.includes('name="login"') ? 'login' : 'consent', login, password: 'x' })
    }
  }
  throw new Error('The issuer did not send the browser back')
}
