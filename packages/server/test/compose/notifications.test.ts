import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openRemoteScans } from '../../src/compose/scanning.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeListStore } from '../../src/database/hash-list-store.ts'
import { makeSignatureStore } from '../../src/database/signature-store.ts'
import type { JobContents } from '../../src/domain/ports/content-store.ts'
import { newScanId } from '../../src/domain/scans/scan.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'
import { waitFor } from '../support/wait-for.ts'

const log = makeLogger({ level: 'silent', region: 'test' })

describe('notifications of a node', () => {
  let stores: TestStores
  before(async () => {
    stores = await openTestStores()
  })
  after(() => stores.close())

  for (const kind of ['embedded', 'external'] as const) {
    test(`changes that a command makes arrive with an ${kind} database`, async () => {
      const { database } = stores
      const { config } = loadConfig(kind === 'embedded' ? {} : { ASSAY_DATABASE_URL: database.url })
      // Nothing of this test reads content.
      const contents = { storeIds: [] } as unknown as JobContents
      const { notifications, close } = openRemoteScans(config, {
        database,
        contents,
        kinds: ['malware'],
        listClaimedKinds: () => ['malware'],
        log,
      })
      try {
        const received: string[] = []
        await waitFor(() => notifications.isListening())
        for (const topic of ['hash-lists', 'signatures', 'jobs'] as const) {
          notifications.on(topic, () => void received.push(topic))
        }
        await makeListStore(database).addEntry({
          id: newScanId(new Date()),
          list: 'block',
          matches: 'sha256',
          value: 'a'.repeat(64),
          reason: 'test',
          createdBy: 'test',
          expiresAt: null,
        })
        await waitFor(() => received.includes('hash-lists'))
        const read = async () => Buffer.from(kind)
        await makeSignatureStore(database).saveFiles([{ name: 'own.ndb', read }])
        await waitFor(() => received.includes('signatures'))
        notifications.send('jobs')
        if (kind === 'external') await waitFor(() => received.includes('jobs'))
        else assert.deepEqual(received, ['hash-lists', 'signatures'])
      } finally {
        await close()
      }
    })
  }
})
