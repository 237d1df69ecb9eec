import { makeAdmissionGate } from '../database/admission-gate.ts'
import { isTestInstallation } from '../database/installation-store.ts'
import { parseRestrictions } from '../domain/accounts/key-restrictions.ts'
import { toKeyDigest } from '../domain/accounts/secrets.ts'
import type { AdmissionAnswer } from '../domain/ports/admission-gate.ts'
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
  const fault = findKeyFault(definition, answer, await isTestInstallation(database))
  if (fault !== undefined) {
    const says = `${origin}: the API key ${fault}. Create one: npm run assay -- keys create --account ID --name NAME.`
    return { ok: false, says }
  }
  const account = answer.outcome === 'unknown-key' ? undefined : await accounts.findAccount(answer.caller.accountId)
  return { ok: true, says: `${kind} on ${toAddressText(address)} for the account ${account?.name ?? 'unknown'}` }
}

export const testKeyFault = 'is a test key: every file would be called clean'

/** Tells why the key of a listener cannot be used for its scans. */
export function findKeyFault(
  { address }: ListenerDefinition,
  answer: AdmissionAnswer,
  isTest: boolean,
): string | undefined {
  if (answer.outcome === 'unknown-key') return 'is not valid: every scan will be refused'
  if (answer.caller.isTest && !isTest) return testKeyFault
  const { allow, kinds, networks } = parseRestrictions(answer.caller.restrictions)
  if (allow?.includes('scan') === false || kinds?.includes('malware') === false)
    return 'may not scan for malware: every scan will be refused'
  return networks !== null && 'path' in address
    ? 'is restricted to networks: every scan over a unix socket will be refused'
    : undefined
}
