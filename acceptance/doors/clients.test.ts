import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { testClamdDoor } from '../support/clamd-door-rules.ts'
import { type Doors, startDoors } from '../support/doors.ts'
import { testIcapDoor } from '../support/icap-door-rules.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'

const lacking = await lacksClamAv(getSharedService().url)

describe('doors for clients that are there already', { skip: lacking || alreadyTested }, () => {
  let doors: Doors
  let dir = ''
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-doors-'))
    doors = await startDoors()
  })
  after(async () => {
    await doors.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const subject = { doors: () => doors, dir: () => dir }
  describe('clamd', () => testClamdDoor(subject))
  describe('ICAP', () => testIcapDoor(subject))

  test('the ledger has each scan that was paid for, once', async () => {
    const [account] = (await doors.operate('accounts', 'list')) as { id: string }[]
    const ledger = await doors.operate('credits', 'ledger', '--account', account?.id ?? '', '--limit', '1000')
    const scans = (ledger as { scan_id: string | null }[]).flatMap(({ scan_id }) => scan_id ?? [])
    assert.equal(scans.length, await doors.countCharges())
    assert.equal(new Set(scans).size, scans.length)
  })
})
