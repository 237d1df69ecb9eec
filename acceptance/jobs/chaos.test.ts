import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import {
  checkDeliveries,
  checkLedger,
  checkLeftovers,
  checkVerdicts,
  completeAll,
  countFailed,
} from '../support/chaos-checks.ts'
import { type Fault, type Installation, openInstallation } from '../support/chaos-installation.ts'
import { type Load, type Order, startLoad } from '../support/chaos-load.ts'
import { newRandom } from '../support/chaos-random.ts'
import { openOrigin, world } from '../support/origin.ts'
import { openReceiver } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)
const seed = Number(process.env.ASSAY_TEST_SEED ?? randomInt(2 ** 31))
const apiKey = 'chaos-test-key'
const secret = `whsec_${randomBytes(32).toString('base64')}`
const marker = `marker-${randomBytes(16).toString('hex')}`
const settings = {
  ASSAY_BOOTSTRAP_KEY: apiKey,
  ASSAY_BOOTSTRAP_WEBHOOK_SECRET: secret,
  ASSAY_OUTBOUND_ALLOW: world,
  ASSAY_NSFW_PROFILE: 'off',
  ASSAY_WEBHOOK_RETRIES: Array(12).fill('1s').join(),
  ASSAY_LOG_LEVEL: 'warn',
}
/** Twelve, in an order of chance. The last one kills the service as well. */
const faults: Fault[] = [
  ...Array<Fault>(2).fill('service'),
  ...Array<Fault>(3).fill('clamd'),
  ...Array<Fault>(3).fill('database'),
  ...Array<Fault>(3).fill('connection'),
  'everything',
]

const minAccepted = 50

test('whatever is killed under load, nothing that was acknowledged is lost, wrong, charged twice or left behind', {
  skip: lacking || alreadyTested,
  timeout: 240_000,
}, async (t) => {
  t.diagnostic(`ASSAY_TEST_SEED=${seed} has the same faults again`)
  const random = newRandom(seed)
  const chance = newRandom(seed + 1)
  const contents = new Map<string, Buffer>()
  const origin = await openOrigin((request, response) => void response.end(contents.get(request.url?.slice(1) ?? '')))
  const receiver = await openReceiver(() => ({ status: chance.happens(0.03) ? 500 : 204 }))
  const installation = await openInstallation(settings)
  const load = startLoad({
    url: installation.url,
    apiKey,
    originUrl: origin.url,
    receiverUrls: [receiver.url],
    marker,
    random: chance,
    clients: 6,
    // Some content is above the megabyte from which on a scan takes scratch.
    maxBytes: 1_200_000,
    publish: (order: Order) => contents.set(order.name, order.content),
  })
  try {
    await disturb(installation, load, random)
    const hasLoad = () => load.orders.filter(({ id }) => id !== undefined).length >= minAccepted
    await Promise.race([waitUntil('enough acknowledged orders', hasLoad), load.running])
    await load.end()
    await waitUntil('the service to be itself again', () => answers(installation), 60_000)
    const accepted = load.orders.filter(({ id }) => id !== undefined)
    t.diagnostic(`${accepted.length} acknowledged, otherwise ${JSON.stringify(Object.fromEntries(load.refusals))}`)
    assert(accepted.length >= minAccepted, 'there was a load')

    const results = await completeAll({ ...installation, apiKey }, load)
    checkVerdicts(load.orders, results)
    await checkLedger({ ...installation, apiKey }, results)
    await checkDeliveries([receiver], secret, load.orders, results)
    const attempts = receiver.received.length
    t.diagnostic(`${results.size} results, ${countFailed(results)} of them failed; ${attempts} webhooks received`)

    const left = await checkLeftovers(installation, marker)
    t.diagnostic(`${left} orphans were left, encrypted, for the sweeper`)
  } catch (error) {
    t.diagnostic(installation.log().slice(-5000))
    throw error
  } finally {
    await load.abandon()
    await installation.remove()
    await origin.close()
    await receiver.close()
  }
})

async function disturb({ faults: cause }: Installation, load: Load, random: ReturnType<typeof newRandom>) {
  const countAccepted = () => load.orders.filter(({ id }) => id !== undefined).length
  for (const fault of random.shuffle(faults)) {
    // Without an order in between, the fault meets an installation that recovers from the one before.
    const enough = countAccepted() + (random.happens(0.2) ? 0 : random.between(1, 8))
    const progress = waitUntil(`${enough} acknowledged orders`, () => countAccepted() >= enough, 60_000)
    await Promise.race([progress, load.running])
    await cause[fault]()
  }
}

async function answers({ url }: Installation): Promise<boolean> {
  const answer = await fetch(`${url}/v1/me`, { headers: { 'x-api-key': apiKey } }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.status === 200
}
