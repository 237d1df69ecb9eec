import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Check, makeReadiness } from '../../src/domain/readiness.ts'

const fine = { name: 'fine', vital: true, findFault: async () => undefined }
const slow = { name: 'slow', vital: true, findFault: () => new Promise<undefined>(() => {}) }
const broken = { name: 'broken', vital: true, findFault: () => Promise.reject(new Error('a secret inside')) }
const minor = { name: 'minor', vital: false, findFault: async () => 'The minor part is missing.' }

const check = (...checks: Check[]) => makeReadiness({ checks, timeoutMs: 20 }).check()

test('all well is ready', async () => {
  assert.deepEqual(await check(fine), { status: 'ready', reasons: [], checks: { fine: 'ok' }, faults: {} })
})

test('a part that is not vital degrades and says why', async () => {
  const { status, reasons, faults } = await check(fine, minor)
  assert.deepEqual([status, reasons], ['degraded', ['The minor part is missing.']])
  assert.deepEqual(faults, { minor: 'The minor part is missing.' })
})

test('a vital part that fails or hangs makes the service unavailable, without telling strangers what exactly', async () => {
  const { status, reasons } = await check(fine, broken, slow)
  assert.equal(status, 'unavailable')
  assert.deepEqual(reasons, ['The broken does not answer.', 'The check of the slow took more than 20 ms.'])
})

test('a service that stops is unavailable from that moment on', async () => {
  const readiness = makeReadiness({ checks: [fine], timeoutMs: 20 })
  readiness.startStopping()
  assert.deepEqual((await readiness.check()).reasons, ['The service is stopping.'])
})
