import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { checkLedger, checkVerdicts, completeAll, countFailed } from '../acceptance/support/chaos-checks.ts'
import { type Installation, openInstallation } from '../acceptance/support/chaos-installation.ts'
import { type Load, type Order, startLoad } from '../acceptance/support/chaos-load.ts'
import { newRandom } from '../acceptance/support/chaos-random.ts'
import { grepFiles } from '../acceptance/support/content-files.ts'
import { openOrigin, world } from '../acceptance/support/origin.ts'
import { waitUntil } from '../acceptance/support/wait-until.ts'
import { toText } from './counts.ts'
import { isReady, watchHealth } from './health.ts'
import { startScans } from './scans.ts'

type Options = {
  settings?: NodeJS.ProcessEnv
  prepare?: (dataDir: string) => undefined | (() => void)
  under?: string[]
  /** Causes the fault and returns observations. */
  disturb(installation: Installation, load: Load, scans: Scans): Promise<string | undefined>
  /** Time in which the service must be ready again. */
  backMs?: number
  /** Also waits until each acknowledged job was reported to its callback URL. */
  checksWebhooks?: boolean
}

type Scans = Awaited<ReturnType<typeof startScans>>

const apiKey = 'soak-test-key'

/**
 * Submits and scans from several clients during a fault and then checks the invariants: nothing that was accepted
 * is lost, ledger and balance agree, nothing is charged twice, no threat is called clean, no content is left in
 * clear, and the service becomes ready again without help.
 */
export async function underLoad(options: Options): Promise<string> {
  const { settings, prepare, under, disturb, backMs = 60_000, checksWebhooks = false } = options
  const marker = `marker-${randomBytes(16).toString('hex')}`
  const contents = new Map<string, Buffer>()
  const called = new Set<string>()
  const origin = await openOrigin((request, response) => {
    // Webhooks arrive here as well. The service stores their responses for operators, so that they must not be content.
    if (request.method === 'POST') {
      called.add(request.url ?? '')
      response.writeHead(204).end()
    } else response.end(contents.get(request.url?.slice(1) ?? ''))
  })
  const installation = await openInstallation(
    {
      ASSAY_BOOTSTRAP_KEY: apiKey,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_NSFW_PROFILE: 'off',
      ASSAY_LOG_LEVEL: 'warn',
      ASSAY_DISK_RESERVE_MB: '0',
      ...settings,
    },
    { prepare, under },
  )
  const balances = { ...installation, apiKey }
  const load = startLoad({
    url: installation.url,
    apiKey,
    originUrl: origin.url,
    receiverUrls: [origin.url],
    marker,
    random: newRandom(1),
    clients: 4,
    publish: (order: Order) => contents.set(order.name, order.content),
  })
  const scans = await startScans(balances)
  const health = watchHealth(installation.url)
  try {
    await Promise.race([pause(3000), load.running])
    const observed = await Promise.race([disturb(installation, load, scans), load.running.then(() => undefined)])
    await waitUntil('the service to be ready again', () => isReady(installation.url), backMs)
    await pause(2000)
    const vitals = await health.end()
    await load.end()
    await scans.end()

    const results = await completeAll(balances, load)
    // The fault also affects the origin of this test.
    checkVerdicts(load.orders, results, { tolerated: ['Error:DownloadFailed'] })
    await checkLedger(balances, results)
    const sync = await scans.check()
    if (checksWebhooks)
      await waitUntil('every webhook', () => load.orders.every((order) => isCalled(order, called)), 90_000)
    const clear = grepFiles(installation.dataDir, Buffer.from(marker))
    assert.deepEqual(clear, [], `in clear: ${clear}`)
    const lines = installation.log().split('\n').length - 1
    return [
      ...(observed === undefined ? [] : [observed]),
      `${results.size} jobs (${countFailed(results)} failed and refunded), refusals ${toText(load.refusals)}`,
      `scans ${sync}`,
      `livez p99 ${vitals.livezMs} ms, readyz p99 ${vitals.readyzMs} ms${vitals.failures > 0 ? `, ${vitals.failures} health checks unanswered` : ''}`,
      `readyz said: ${vitals.reasons.join(' ') || 'ready'}`,
      `${lines} log lines of warnings`,
    ].join('; ')
  } catch (error) {
    process.stderr.write(installation.log().slice(-4000))
    throw error
  } finally {
    await health.end().catch(() => {})
    await scans.end().catch(() => {})
    await load.abandon()
    await installation.remove()
    await origin.close()
  }
}

const isCalled = ({ id, name, callbackUrl }: Order, called: Set<string>) =>
  id === undefined || callbackUrl === undefined || called.has(`/${name}`)
