import type { Authentication } from '../domain/console/authentication.ts'
import type { SignIn } from '../domain/console/sign-in.ts'
import type { SingleSignOn } from '../domain/console/single-sign-on.ts'
import type { MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { getMember, type Handlers } from './call.ts'
import { clearSsoCookie, findSessionToken, findSsoToken, setSessionCookies, setSsoCookie } from './cookies.ts'

export type SsoDeps = {
  /** Undefined without an issuer. */
  sso: SingleSignOn | undefined
  members: MemberStore
  authentication: Authentication
  signIn: SignIn
}

/**
 * Handlers for single sign-on. The issuer sends the browser to a page of the console, and that page calls `finishSso`:
 * a navigation from another site would not carry the strict cookies.
 */
export function makeSsoHandlers({ sso, members, authentication, signIn }: SsoDeps) {
  return {
    async getSso() {
      if (sso === undefined) return { state: 'off', is_required: false }
      const fault = await sso.findLastFault()
      return { state: fault === undefined ? 'available' : 'unreachable', is_required: sso.isRequired }
    },
    async startSso({ request, reply }) {
      const { url, token } = await requireSso(sso).start(null)
      setSsoCookie(request, reply, token)
      return { url }
    },
    async finishSso({ body, origin, request, reply }) {
      const token = findSessionToken(request)
      const visit = token === undefined ? undefined : await signIn.findVisitor(token)
      clearSsoCookie(request, reply)
      const finished = await requireSso(sso).finish(body, findSsoToken(request), origin, visit)
      if (finished === 'linked') return { state: 'linked' }
      setSessionCookies(request, reply, finished)
      return { state: 'signed-in' }
    },
    /** Needs the password, so that a stolen session cannot add an identity of its own. */
    async linkSso({ who, body, request, reply }) {
      const member = await getMember(members, who)
      const sessionId = who.sessionId ?? ''
      const provider = requireSso(sso)
      await authentication.confirmPassword(member, sessionId, body.password, 'password')
      const { url, token } = await provider.start(sessionId)
      setSsoCookie(request, reply, token)
      return { url }
    },
    /** Needs the password, so that a person who has none does not lock themselves out. */
    async unlinkSso({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      const provider = requireSso(sso)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await atomically(async () => {
        const removal = await provider.unlink(member.id)
        if (removal === 'last') throw newLastRole()
        if (removal === 'done') await audit('sso.unlink', member.email)
      })
    },
  } satisfies Partial<Handlers>
}

const newLastRole = () =>
  new Problem({
    kind: 'conflict',
    detail:
      'Single sign-on makes you an operator, or the owner of an account, and nobody else can sign in as one. Invite ' +
      'another operator or owner first.',
  })

function requireSso(sso: SingleSignOn | undefined): SingleSignOn {
  if (sso === undefined) throw new Problem({ kind: 'not-found', detail: 'Single sign-on is not set up.' })
  return sso
}
