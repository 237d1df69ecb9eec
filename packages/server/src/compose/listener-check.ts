import { makeAdmissionGate } from '../database/admission-gate.ts'
import { parseRestrictions } from '../domain/accounts/key-restrictions.ts'
import { toKeyDigest } from '../domain/accounts/secrets.ts'
import { type ListenerDefinition, toAddressText } from './listener-definitions.ts'
import type { Stores } from './stores.ts'

/** Describes a listener for `doctor`: its address and account, or why its scans would be refused. */
export async function checkListener(definition: ListenerDefinition, { database, accounts }: Stores) {
  const { kind, origin, address, apiKey } = definition
  const { isUnavailable, reportError: onOutage } = database.watch
  const gate = makeAdmissionGate({
    pool: database.pool,
    observeBatch() {},
    openBalances: undefined,
    isUnavailable,
    onOutage,
  })
  const answer = await gate.admit({ keyDigest: toKeyDigest(apiKey), countsRequest: false })
  const set = 'Create a key with: npm run assay -- keys create --account ID --name NAME.'
  if (answer.outcome === 'unknown-key') return { ok: false, says: `${origin}: its API key is not valid. ${set}` }
  const { allow, kinds, networks } = parseRestrictions(answer.caller.restrictions)
  const isRefused =
    allow?.includes('scan') === false ||
    kinds?.includes('malware') === false ||
    (networks !== null && 'path' in address)
  if (isRefused)
    return { ok: false, says: `${origin}: its API key is restricted so that every scan is refused. ${set}` }
  const account = await accounts.findAccount(answer.caller.accountId)
  return { ok: true, says: `${kind} on ${toAddressText(address)} for the account ${account?.name ?? 'unknown'}` }
}
