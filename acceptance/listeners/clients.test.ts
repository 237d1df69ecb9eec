import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { testClamdListener } from '../support/clamd-listener-rules.ts'
import { testIcapListener } from '../support/icap-listener-rules.ts'
import { type Listeners, listenerKey, startListeners } from '../support/listeners.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { lacksSquid, testSquid } from '../support/squid-rules.ts'
import { withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)

const toTable = (name: string, option: string) => `[[listeners]]\nname = "${name}"\nkind = "icap"
address = "tcp://127.0.0.1:0"\napi_key = "${listenerKey}"\n${option}\n`

describe('the listeners', { skip: lacking || alreadyTested }, () => {
  let listeners: Listeners
  let dir = ''
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-listeners-'))
    writeFileSync(join(dir, 'assay.toml'), toTable('small', 'max_mb = 2') + toTable('trickling', 'trickle = true'))
    listeners = await startListeners({ ...withoutImages, ASSAY_CONFIG: join(dir, 'assay.toml') })
    await waitUntil('all listeners', () => listeners.findPort('trickling') > 0)
  })
  after(async () => {
    await listeners.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const subject = { listeners: () => listeners, dir: () => dir }
  describe('clamd', () => testClamdListener(subject))
  describe('ICAP', () => testIcapListener(subject))

  test('the ledger has each charged scan once', async () => {
    const [account] = (await listeners.operate('accounts', 'list')) as { id: string }[]
    const ledger = await listeners.operate('credits', 'ledger', '--account', account?.id ?? '', '--limit', '1000')
    const scans = (ledger as { scan_id: string | null }[]).flatMap(({ scan_id }) => scan_id ?? [])
    assert.equal(scans.length, await listeners.countCharges())
    assert.equal(new Set(scans).size, scans.length)
  })

  describe('to Squid', { skip: lacksSquid }, () => {
    testSquid({ listeners: () => listeners, port: () => listeners.findPort('trickling') })
  })
})
