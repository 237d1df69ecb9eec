import type { KeyRow } from '@assay/contract/admin'
import type { ApiKey } from '../domain/accounts/account.ts'
import { type KeyRestrictions, readNetwork } from '../domain/accounts/key-restrictions.ts'
import type { Registration } from '../domain/accounts/registration.ts'
import { consoleKeyName, consoleKeyPrefix } from '../domain/console/console-keys.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { KeyStore } from '../domain/ports/key-store.ts'
import type { MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { type Call, getAccountId, type Handlers, readExpiry, requireFound, toConflict } from './call.ts'

export type KeyHandlerDeps = { keys: KeyStore; members: MemberStore; registration: Registration; clock: Clock }

const hourMs = 3_600_000

/** Handlers for the API keys of an account. The key itself appears in one response and is not stored. */
export function makeKeyHandlers(deps: KeyHandlerDeps) {
  const { keys, members, registration, clock } = deps

  return {
    async listKeys(call) {
      const accountId = getAccountId(call)
      const emails = new Set((await members.listMembers(accountId)).map(({ email }) => email))
      return (await listOwn(accountId)).map((key) => toKeyRow(key, emails))
    },

    async createKey(call) {
      const { name, is_test: isTest = false } = call.body
      const expiresAt = readExpiry(call.body.expires_at, clock)
      const restrictions = readRestrictions(call.body)
      if (name.trim() === consoleKeyName) {
        throw new Problem({
          kind: 'validation',
          errors: { name: ['The console uses this name. Choose another.'] },
        })
      }
      const created = await registration
        .createKey(getAccountId(call), {
          name: name.trim(),
          expiresAt,
          isTest,
          restrictions,
          createdBy: call.who.actor,
        })
        .catch(toConflict)
      await call.audit('key.create', created.key.name, { detail: JSON.stringify(created.key.restrictions) })
      return { key: toKeyRow(created.key), api_key: created.apiKey }
    },

    async rotateKey(call) {
      const accountId = getAccountId(call)
      const old = await getKey(call)
      if (old.revokedAt !== null) {
        throw new Problem({ kind: 'conflict', detail: 'The key is revoked. Create a new one.' })
      }
      const created = await registration
        .createKey(accountId, { ...old, createdBy: call.who.actor, replacesId: old.id })
        .catch(toConflict)
      await keys.expireKey(accountId, old.id, call.body.overlap_hours * hourMs)
      await call.audit('key.rotate', old.name)
      return { key: toKeyRow(created.key), api_key: created.apiKey }
    },

    async restrictKey(call) {
      const key = await getKey(call)
      const restrictions = requireFound(await keys.restrictKey(key.id, readRestrictions(call.body)), 'key')
      await call.audit('key.restrict', key.name, { detail: JSON.stringify(restrictions) })
      return toKeyRow({ ...key, restrictions })
    },

    async revokeKey(call) {
      const key = await getKey(call)
      if (call.body.name !== key.name) {
        throw new Problem({ kind: 'validation', errors: { name: [`Enter the name of the key: ${key.name}`] } })
      }
      await keys.revokeKey(key.id)
      await call.audit('key.revoke', key.name)
    },
  } satisfies Partial<Handlers>

  async function listOwn(accountId: string) {
    return (await keys.listKeys(accountId)).filter(({ prefix }) => prefix !== consoleKeyPrefix)
  }

  async function getKey(call: Call<'rotateKey' | 'restrictKey' | 'revokeKey'>): Promise<ApiKey> {
    const ownKeys = await listOwn(getAccountId(call))
    const key = ownKeys.find(({ id }) => id === call.params.id)
    return requireFound(key, 'key')
  }
}

function readRestrictions({ allow = null, kinds = null, networks = null }: Partial<KeyRestrictions>): KeyRestrictions {
  const read = networks?.map((network) => readNetwork(network)) ?? null
  const wrong = networks?.filter((_, index) => read?.[index] === undefined) ?? []
  if (wrong.length === 0) return { allow, kinds, networks: read as string[] | null }
  const message = `${wrong.join(', ')}: enter networks such as 10.0.0.0/8 or 2001:db8::/32.`
  throw new Problem({ kind: 'validation', errors: { networks: [message] } })
}

/** `members` are the email addresses of the account; by default the creator is one of them. */
export const toKeyRow = (key: ApiKey, members?: ReadonlySet<string>): KeyRow => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  is_test: key.isTest,
  allow: key.restrictions.allow,
  kinds: key.restrictions.kinds,
  networks: key.restrictions.networks,
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt?.toISOString() ?? null,
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
  revoked_at: key.revokedAt?.toISOString() ?? null,
  created_by: key.createdBy,
  creator_left: key.createdBy !== null && members?.has(key.createdBy) === false,
})
