import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { openInstallation } from '../support/chaos-installation.ts'
import { world } from '../support/origin.ts'
import { findChild } from '../support/processes.ts'
import { openReceiver, verifyDelivery } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)
const apiKey = 'takeover-test-key'
const secret = `whsec_${randomBytes(32).toString('base64')}`

test('a job whose service is killed in the middle is taken over by the next one, and charged once', {
  skip: lacking || alreadyTested,
}, async () => {
  const receiver = await openReceiver()
  const installation = await openInstallation({
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_BOOTSTRAP_WEBHOOK_SECRET: secret,
    ASSAY_OUTBOUND_ALLOW: world,
    ASSAY_NSFW_PROFILE: 'off',
  })
  try {
    const caller = makeCaller(installation.url, apiKey)
    // Larger than a row of the database holds.
    const tar = newTar([{ name: 'a.txt', data: Buffer.alloc(2 ** 20, 'text ') }, eicarMember])
    const clamd = findChild(installation.pid(), 'clamd')
    assert(clamd !== undefined)
    const countRunning = async () => ((await installation.operate('jobs')) as { running: number }).running
    // The first command starts the process of all commands, which can take seconds. It comes before the stop of clamd,
    // so that the job is seen while it runs: a clamd that stays silent is taken for one that hangs, and is replaced.
    assert.equal(await countRunning(), 0)
    // The scan cannot go on from here.
    process.kill(clamd, 'SIGSTOP')
    const id = toId(await caller.sendFile('malware', 'submit', tar, { callback_url: `${receiver.url}/` }))
    await waitUntil('the job to run', async () => (await countRunning()) === 1)
    assert.equal(toResult(await caller.fetchResult('malware', id), 200).status, 'pending', 'it is in the middle')
    await installation.kill()
    await installation.start()

    const { status, signals } = await caller.complete('malware', id)
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    assert.equal(await caller.readSpent(), 1)
    await waitUntil('the callback', () => receiver.received.length > 0)
    const [delivery] = receiver.received
    assert(delivery !== undefined)
    assert.equal(verifyDelivery(delivery, secret).id, id)
    await installation.stop()
    assert.deepEqual(installation.listProcesses(), [])
  } finally {
    await installation.remove()
    await receiver.close()
  }
})
