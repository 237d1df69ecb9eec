import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { roles } from './access.ts'
import { count, email, flag, id, name, nullable, oneOf, password, signInCode, text, time, totpCode } from './fields.ts'

const role = oneOf(...(roles as ['operator', 'owner', 'member']))
const accountRole = oneOf('owner', 'member')

export const SignIn = Type.Object({
  email,
  password: Type.String({ minLength: 1, maxLength: 200 }),
  code: Type.Optional(signInCode),
})
export type SignIn = Static<typeof SignIn>

/** `code-needed`: the password is correct; send it again with a code from the authenticator app, or a recovery code. */
export const SignedIn = Type.Object({ state: oneOf('signed-in', 'code-needed') })

export const Session = Type.Object({
  member: Type.Object({ id, name: text, email: text, role, has_totp: flag, recovery_codes_left: count, has_sso: flag }),
  /** The account that the session works in; null for an operator without an account. */
  account: nullable(
    Type.Object({
      id,
      name: text,
      role: accountRole,
      /** Set while the account is suspended: then only `GET /account` answers. */
      suspended_at: nullable(time),
      suspended_reason: nullable(text),
    }),
  ),
  /** All accounts of the member. */
  accounts: Type.Array(Type.Object({ id, name: text, role: accountRole })),
  csrf_token: text,
  region: text,
  version: text,
  /** Page of the issuer on which to end the session there as well; null unless single sign-on opened this session. */
  sso_sign_out_url: nullable(text),
  /** True if the service runs in test mode: verdicts come from a table and nothing is scanned. */
  test_mode: flag,
})
export type Session = Static<typeof Session>

/** Whether people can sign in with the OpenID Connect issuer of the operator, and whether they must. */
export const SingleSignOn = Type.Object({ state: oneOf('off', 'available', 'unreachable'), is_required: flag })
export type SingleSignOn = Static<typeof SingleSignOn>
/** The page of the issuer that the browser must open. */
export const IssuerPage = Type.Object({ url: text })
/** The parameters with which the issuer sends the browser back. */
export const FinishSso = Type.Object({
  code: Type.Optional(Type.String({ maxLength: 4096 })),
  state: Type.String({ minLength: 1, maxLength: 200 }),
  iss: Type.Optional(Type.String({ maxLength: 2048 })),
  error: Type.Optional(Type.String({ maxLength: 200 })),
})
export const FinishedSso = Type.Object({ state: oneOf('signed-in', 'linked') })
export const ConfirmSso = Type.Object({ password: Type.String({ minLength: 1, maxLength: 200 }) })

/** Purpose of a one-time link: set up the first operator, accept an invitation, or set a new password. */
export const Link = Type.Object({
  purpose: oneOf('first-operator', 'invitation', 'new-password'),
  role,
  account_name: nullable(text),
  email: nullable(text),
  /** True if the address has a password already: accepting the link then needs it, and a code if there is an app. */
  is_member: flag,
})
export type Link = Static<typeof Link>

/** Token of a one-time link. Requests carry it in the body because paths are logged. */
const token = Type.String({ minLength: 1, maxLength: 100 })
export const FindLink = Type.Object({ token })
export const AcceptLink = Type.Object({ token, name, email, password, code: Type.Optional(signInCode) })
export type AcceptLink = Static<typeof AcceptLink>

export const OpenSession = Type.Object({
  id,
  created_at: time,
  last_seen_at: time,
  address: text,
  agent: text,
  is_this: flag,
})
export const OpenSessions = Type.Array(OpenSession)

export const ChangePassword = Type.Object({ current: Type.String({ minLength: 1, maxLength: 200 }), next: password })
/** Secret for an authenticator app. It takes effect once a code is confirmed. */
export const TotpSecret = Type.Object({ secret: text, uri: text })
export const StartTotp = Type.Object({ password: Type.String({ minLength: 1, maxLength: 200 }) })
export const ConfirmTotp = Type.Object({ code: totpCode })
/** Codes that each replace a code of the authenticator app once. They appear only in this response. */
export const RecoveryCodes = Type.Object({ recovery_codes: Type.Array(text) })
export const RenewRecoveryCodes = Type.Object({ password: Type.String({ minLength: 1, maxLength: 200 }) })
export const ChooseAccount = Type.Object({ account_id: id })
export const RemoveTotp = Type.Object({ password: Type.String({ minLength: 1, maxLength: 200 }) })

export const Member = Type.Object({
  id,
  name: text,
  email: text,
  role: accountRole,
  is_operator: flag,
  has_totp: flag,
  created_at: time,
  last_seen_at: nullable(time),
})
export type Member = Static<typeof Member>
export const Members = Type.Object({
  members: Type.Array(Member),
  invitations: Type.Array(Type.Object({ id, role, email: nullable(text), created_at: time, expires_at: time })),
})
/** An invitation works for its address only. */
export const Invite = Type.Object({ role: accountRole, email })
/** An invitation link; `url` appears only in this response. */
export const Invitation = Type.Object({ id, url: text, expires_at: time })
