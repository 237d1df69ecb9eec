import type { accountRoutes, KeyRow } from '@assay/contract/admin'
import type { ApiKey } from '../domain/accounts/account.ts'
import type { Registration } from '../domain/accounts/registration.ts'
import { consoleKeyName, consoleKeyPrefix } from '../domain/console/console-keys.ts'
import type { AuditLog } from '../domain/ports/audit-log.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { KeyStore } from '../domain/ports/key-store.ts'
import { Problem } from '../domain/problem.ts'
import { type Call, getAccountId, type Handlers, requireThere } from './call.ts'

export type KeyHandlerDeps = { keys: KeyStore; registration: Registration; audit: AuditLog; clock: Clock }

type Names = 'listKeys' | 'createKey' | 'rotateKey' | 'revokeKey'

const hourMs = 3_600_000

/** API keys of an account. A key itself is in one answer and nowhere else. */
export function makeKeyHandlers(deps: KeyHandlerDeps): Handlers<Names & keyof typeof accountRoutes> {
  const { keys, registration, audit, clock } = deps

  return {
    listKeys: async (call) => (await listOwn(getAccountId(call))).map(toRow),

    async createKey(call) {
      const { name, expires_at, is_test: isTest = false } = call.body
      const expiresAt = expires_at === undefined || expires_at === null ? null : new Date(expires_at)
      if (expiresAt !== null && expiresAt <= clock.now()) {
        throw new Problem({ kind: 'validation', errors: { expires_at: ['Enter a time in the future.'] } })
      }
      if (name.trim() === consoleKeyName) {
        throw new Problem({ kind: 'validation', errors: { name: ['The console uses this name. Choose another.'] } })
      }
      const made = await registration.createKey(getAccountId(call), { name: name.trim(), expiresAt, isTest })
      await note(call, 'key.create', made.key.name)
      return { key: toRow(made.key), api_key: made.apiKey }
    },

    async rotateKey(call) {
      const accountId = getAccountId(call)
      const old = await getKey(call)
      if (old.revokedAt !== null)
        throw new Problem({ kind: 'conflict', detail: 'The key is revoked. Create a new one.' })
      const made = await registration.createKey(accountId, old)
      await keys.expireKey(accountId, old.id, new Date(clock.now().getTime() + call.body.overlap_hours * hourMs))
      await note(call, 'key.rotate', old.name)
      return { key: toRow(made.key), api_key: made.apiKey }
    },

    async revokeKey(call) {
      const key = await getKey(call)
      if (call.body.name !== key.name) {
        throw new Problem({ kind: 'validation', errors: { name: [`Type the name of the key: ${key.name}`] } })
      }
      await keys.revokeKey(key.id)
      await note(call, 'key.revoke', key.name)
    },
  }

  async function listOwn(accountId: string) {
    return (await keys.listKeys(accountId)).filter(({ prefix }) => prefix !== consoleKeyPrefix)
  }

  async function getKey(call: Call<'rotateKey' | 'revokeKey'>): Promise<ApiKey> {
    const own = await listOwn(getAccountId(call))
    return requireThere(
      own.find(({ id }) => id === call.params.id),
      'key',
    )
  }

  async function note({ who, origin }: Pick<Call<'createKey'>, 'who' | 'origin'>, action: string, target: string) {
    await audit.note({ actor: who.actor, action, target, accountId: who.accountId, address: origin.address })
  }
}

const toRow = (key: ApiKey): KeyRow => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  is_test: key.isTest,
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt?.toISOString() ?? null,
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
  revoked_at: key.revokedAt?.toISOString() ?? null,
})
