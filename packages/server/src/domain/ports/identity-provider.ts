/** A person at the issuer, as a verified ID token describes them. */
export type Identity = {
  issuer: string
  /** Identifies the person at the issuer for ever; email addresses may change hands. */
  subject: string
  email: string | undefined
  isEmailVerified: boolean
  name: string | undefined
  claims: Record<string, unknown>
}

/** Values that tie an answer of the issuer to the browser that began the sign-in. */
export type SignInSecrets = { state: string; nonce: string; verifier: string }

/** The parameters with which the issuer sends the browser back. */
export type IssuerAnswer = { code?: string; state: string; iss?: string; error?: string }

/** A sign-in that the issuer did not confirm. The message is for the log and the audit log. */
export class IdentityError extends Error {
  /** True if the issuer did not answer, so that another attempt may succeed. */
  readonly isUnreachable: boolean

  constructor(message: string, { isUnreachable, cause }: { isUnreachable: boolean; cause?: unknown }) {
    super(message, { cause })
    this.isUnreachable = isUnreachable
  }
}

/** An OpenID Connect issuer. Every function that asks it throws an IdentityError. */
export type IdentityProvider = {
  issuer: string
  /** The page of the issuer on which the person signs in. */
  toSignInUrl(secrets: SignInSecrets): Promise<string>
  /** Exchanges the code of the answer for an ID token, and verifies it. */
  identify(answer: IssuerAnswer, secrets: SignInSecrets): Promise<Identity>
  /** The page of the issuer that ends the session there; undefined if there is none, or it is not known yet. */
  findSignOutUrl(): string | undefined
  /** Asks the issuer and returns why it cannot be used; undefined if it can. */
  findFault(): Promise<string | undefined>
  /** The same by the last answer of the issuer. Asks again at times, and waits only for the first answer. */
  findLastFault(): Promise<string | undefined>
}
