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
    async startTotp({ who, audit }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt !== null) throw newTotpConflict()
      const secret = randomBytes(20)
      await members.setTotp(member.id, secret, null)
      await audit('totp.start')
      return { secret: toBase32(secret), uri: toTotpUri(secret, member.email) }
    },
    async confirmTotp({ who, body, audit }) {
      const { id, totpConfirmedAt } = await getMember(members, who)
      const totpSecret = await members.findTotpSecret(id)
      if (totpConfirmedAt !== null) throw newTotpConflict()
      const step = totpSecret === null ? undefined : findTotpStep(totpSecret, body.code, clock.now())
      if (step === undefined) throw new Problem({ kind: 'validation', errors: { code: ['Wrong code.'] } })
      await members.setTotp(id, totpSecret, clock.now())
      await members.takeTotpStep(id, step)
      await audit('totp.confirm')
      return replaceRecoveryCodes(id)
    },
    async renewRecoveryCodes({ who, body, audit }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt === null) {
        throw new Problem({
          kind: 'conflict',
          detail: 'Recovery codes belong to an authenticator app. Set it up first.',
        })
      }
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await audit('recovery-codes.renew')
      return replaceRecoveryCodes(member.id)
    },
    async removeTotp({ who, body, audit }) {
      const member = await getMember(members, who)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await members.setTotp(member.id, null, null)
      await members.setRecoveryCodes(member.id, [])
      await audit('totp.remove')
    },
  } satisfies Partial<Handlers>

  async function replaceRecoveryCodes(memberId: string) {
    const codes = newRecoveryCodes()
    await members.setRecoveryCodes(memberId, codes.map(toRecoveryDigest))
    return { recovery_codes: codes }
  }
}

const newTotpConflict = () =>
  new Problem({ kind: 'conflict', detail: 'An authenticator app is already set up. Remove it first.' })
