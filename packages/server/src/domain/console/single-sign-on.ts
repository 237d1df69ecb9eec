import { createHmac } from 'node:crypto'
import {
  IdentityError,
  type IdentityProvider,
  type IssuerAnswer,
  type Member,
  type SignInSecrets,
} from '../ports/member-store.ts'
import { Problem } from '../problem.ts'
import { isSameSecret, type Origin, toDigest } from './authentication.ts'
import { newToken, type OpenedSession } from './sign-in.ts'
import { makeSsoAdmission, type SsoAdmissionDeps } from './sso-admission.ts'

type Deps = SsoAdmissionDeps & { provider: IdentityProvider }

/** The session of the browser that finishes a sign-in, if it has one. */
type Visit = { sessionId: string; member: Member } | undefined

const attemptMs = 10 * 60_000

/** Sign-in to the console with an OpenID Connect issuer, by the rules of the operator. */
export function makeSingleSignOn(deps: Deps) {
  const { provider, rules, store, log } = deps
  const admission = makeSsoAdmission(deps)

  return {
    isRequired: rules.isRequired,
    findFault: provider.findFault,
    findLastFault: provider.findLastFault,
    findSignOutUrl: provider.findSignOutUrl,
    describe: store.describe,
    unlink: store.unlink,

    /** Begins a sign-in, or with a session the link of its member. The browser keeps the token for the end. */
    async start(sessionId: string | null): Promise<{ url: string; token: string }> {
      const token = newToken()
      const url = await provider.toSignInUrl(toSecrets(token)).catch(throwProblem)
      await store.addAttempt({ digest: toDigest(token), sessionId, lifetimeMs: attemptMs })
      return { url, token }
    },

    /** Ends what `start` began. Returns a new session, or `linked` for the member of the session that began it. */
    async finish(
      answer: IssuerAnswer,
      token: string | undefined,
      origin: Origin,
      visit: Visit,
    ): Promise<OpenedSession | 'linked'> {
      const attempt = token === undefined ? undefined : await store.takeAttempt(toDigest(token))
      if (token === undefined || attempt === undefined) throw newUnknownAttempt()
      const secrets = toSecrets(token)
      // The provider compares the state as well; a wrong one must not cause a request to the issuer.
      if (!isSameSecret(secrets.state, answer.state)) throw newUnknownAttempt()
      const identity = await identify(answer, secrets, origin)
      if (attempt.sessionId === null) return admission.enter(identity, origin)
      if (visit?.sessionId !== attempt.sessionId) throw newUnknownAttempt()
      await admission.connect(visit.member, identity, origin)
      return 'linked'
    },
  }

  async function identify(answer: IssuerAnswer, secrets: SignInSecrets, origin: Origin) {
    try {
      return await provider.identify(answer, secrets)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.isUnreachable) throwProblem(error)
      // Anybody can cause this, and the audit log keeps its entries for ever, so only the log has it.
      log.warn({ address: origin.address, why: error.message }, 'single sign-on not confirmed')
      const detail = 'Your provider did not confirm the sign-in. Start again.'
      throw new Problem({ kind: 'forbidden', detail }, { cause: error })
    }
  }

  function throwProblem(error: unknown): never {
    if (!(error instanceof IdentityError)) throw error
    log.warn({ err: error }, 'the issuer of single sign-on cannot be used')
    const detail = 'Single sign-on is not available: the provider does not answer.'
    throw new Problem({ kind: 'overloaded', retryAfterSeconds: 10, detail }, { cause: error })
  }
}

export type SingleSignOn = ReturnType<typeof makeSingleSignOn>

/** Derives what belongs to a sign-in from the token of the browser, so that the database holds only its digest. */
function toSecrets(token: string): SignInSecrets {
  const derive = (purpose: string) => createHmac('sha256', token).update(`sso ${purpose}`).digest('base64url')
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') }
}

const newUnknownAttempt = () =>
  new Problem({
    kind: 'forbidden',
    detail:
      'This sign-in was begun in another browser, is finished already, or took longer than ten minutes. Start again.',
  })
