import { openStores } from '../../src/compose/stores.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import { silentLog } from './silent-log.ts'
import { newTestScan } from './test-scan.ts'

/** A process to be killed: charges scans from many callers at once and prints the id of each when it is acknowledged. */
const { config } = loadConfig(process.env)
const { database, registration } = await openStores(config, 'service', silentLog)
const { apiKey } = await registration.register({ name: 'loop', plan: 'standard' })
const gate = makeAdmissionGate(database)
const keyDigest = toKeyDigest(apiKey)

async function chargeForever(): Promise<never> {
  for (;;) {
    const scan = newTestScan()
    const { outcome } = await gate.admit({ keyDigest, countsRequest: false, scan })
    if (outcome === 'admitted') process.stdout.write(`${scan.id}\n`)
  }
}

await Promise.all(Array.from({ length: 16 }, chargeForever))
