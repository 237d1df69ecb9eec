import { randomBytes } from 'node:crypto'
import type { Authentication } from '../domain/console/authentication.ts'
import { findTotpStep, newRecoveryCodes, toBase32, toRecoveryDigest, toTotpUri } from '../domain/console/credentials.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { getMember, type Handlers } from './call.ts'

export type TotpDeps = { members: MemberStore; authentication: Authentication; clock: Clock }

/** Handlers for the authenticator app of a member and its recovery codes. */
export function makeTotpHandlers({ members, authentication, clock }: TotpDeps) {
  return {
    /** Needs the password, so that a stolen session cannot add an app of its own and lock the person out. */
    async startTotp({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt !== null) throw newTotpConflict()
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      const secret = randomBytes(20)
      await atomically(async () => {
        if (!(await members.startTotp(member.id, secret))) throw newTotpConflict()
        await audit('totp.start')
      })
      return { secret: toBase32(secret), uri: toTotpUri(secret, member.email) }
    },
    async confirmTotp({ who, body, audit }) {
      const { id, totpConfirmedAt } = await getMember(members, who)
      const secret = await members.findTotpSecret(id)
      if (totpConfirmedAt !== null) throw newTotpConflict()
      const step = secret === null ? undefined : findTotpStep(secret, body.code, clock.now())
      if (secret === null || step === undefined) {
        throw new Problem({ kind: 'validation', errors: { code: ['Wrong code.'] } })
      }
      const codes = newRecoveryCodes()
      const app = { secret, step, recoveryDigests: codes.map(toRecoveryDigest) }
      if (!(await members.confirmTotp(id, app))) throw newTotpConflict()
      await audit('totp.confirm')
      return { recovery_codes: codes }
    },
    async renewRecoveryCodes({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt === null) {
        throw new Problem({
          kind: 'conflict',
          detail: 'Recovery codes belong to an authenticator app. Set it up first.',
        })
      }
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      const codes = newRecoveryCodes()
      await atomically(async () => {
        await members.setRecoveryCodes(member.id, codes.map(toRecoveryDigest))
        await audit('recovery-codes.renew')
      })
      return { recovery_codes: codes }
    },
    async removeTotp({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await atomically(async () => {
        await members.removeTotp(member.id)
        await audit('totp.remove')
      })
    },
  } satisfies Partial<Handlers>
}

const newTotpConflict = () =>
  new Problem({ kind: 'conflict', detail: 'An authenticator app is already set up. Remove it first.' })
