import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import {
  checkDeliveries,
  checkLedger,
  checkLeftovers,
  checkVerdicts,
  completeAll,
  countFailed,
} from '../../acceptance/support/chaos-checks.ts'
import { type Installation, openInstallation } from '../../acceptance/support/chaos-installation.ts'
import { type Load, type Order, startLoad } from '../../acceptance/support/chaos-load.ts'
import { newRandom } from '../../acceptance/support/chaos-random.ts'
import { filePart, formType, toForm } from '../../acceptance/support/forms.ts'
import { openOrigin, world } from '../../acceptance/support/origin.ts'
import { findChild, findChildren } from '../../acceptance/support/processes.ts'
import { openReceiver, type Reaction } from '../../acceptance/support/receiver.ts'
import { makeCaller, toResult } from '../../acceptance/support/submitting.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { isReady } from '../health.ts'
import { startScans } from '../scans.ts'
import { mountSmallDisk } from '../small-disk.ts'

const jobs = 10_000
const maxMs = 27 * 60_000
const drainMs = 60_000
const apiKey = 'soak-test-key'
const secret = `whsec_${randomBytes(32).toString('base64')}`
const marker = `marker-${randomBytes(16).toString('hex')}`
const picture = readFileSync(new URL('../../acceptance/support/pictures/colours.jpg', import.meta.url))
const settings = {
  ASSAY_BOOTSTRAP_KEY: apiKey,
  ASSAY_BOOTSTRAP_WEBHOOK_SECRET: secret,
  ASSAY_OUTBOUND_ALLOW: world,
  ASSAY_NSFW_PROFILE: 'fast',
  ASSAY_WEBHOOK_RETRIES: Array(30).fill('2s').join(),
  ASSAY_DISK_RESERVE_MB: '0',
  ASSAY_LOG_LEVEL: 'warn',
}

/** Several, because a killed service holds the places of each host for half a minute. */
const receiverHosts = Array.from({ length: 8 }, (_, n) => `127.9.9.${n + 10}`)

/** How often each fault occurs, in an order of chance. */
const counts = {
  'service killed': 12,
  'everything killed': 3,
  'clamd killed': 12,
  'database killed': 8,
  'connection killed': 12,
  'unpacker killed': 8,
  'image process killed': 8,
  'service stopped for a while': 3,
  'clamd stopped for a while': 6,
  'unpacker stopped': 6,
  'image process stopped': 6,
  'database stopped for a while': 3,
  'connection stopped for a while': 4,
  'disk full': 2,
  'receivers down': 3,
  'receivers slow': 3,
  'receivers refusing': 3,
  restart: 5,
}
type Fault = keyof typeof counts

export const soak: Case = {
  about: 'a hundred faults of all kinds in a row under load: nothing is lost, charged twice, wrong or left behind',
  async run() {
    const seed = Number(process.env.ASSAY_TEST_SEED ?? randomInt(2 ** 31))
    process.stdout.write(`ASSAY_TEST_SEED=${seed} has the same faults again\n`)
    const random = newRandom(seed)
    const contents = new Map<string, Buffer>()
    let reaction: Reaction = { status: 204 }
    let disk: ReturnType<typeof mountSmallDisk> | undefined
    const origin = await openOrigin((request, response) => void response.end(contents.get(request.url?.slice(1) ?? '')))
    const receivers = await Promise.all(receiverHosts.map((host) => openReceiver(() => reaction, { host })))
    const prepare = (dataDir: string) => {
      disk = mountSmallDisk(dataDir, 4096)
      return disk.unmount
    }
    const installation = await openInstallation(settings, { prepare })
    const balances = { ...installation, apiKey }
    const leavers = await startLeavers(installation)
    const reference = await makeCaller(installation.url, leavers.apiKey).sendFile('nsfw/images', 'scan', picture)
    const pictureSignals = toResult(reference, 201).signals ?? []
    const load = startLoad({
      url: installation.url,
      apiKey,
      originUrl: origin.url,
      receiverUrls: receivers.map(({ url }) => url),
      marker,
      random: newRandom(seed + 1),
      clients: 16,
      pauseMs: { from: 20, to: 400 },
      maxBytes: 200_000,
      picture,
      publish: (order: Order) => contents.set(order.name, order.content),
    })
    const scans = await startScans(balances)
    try {
      const startedAt = performance.now()
      const setReaction = (next: Reaction) => {
        reaction = next
      }
      const faults = makeFaults(installation, { fill: () => disk?.fill(), empty: () => disk?.empty(), setReaction })
      const list = random.shuffle(Object.entries(counts).flatMap(([name, n]) => Array<Fault>(n).fill(name as Fault)))
      await causeAll(list, faults, load, startedAt)
      const faultedAt = performance.now()
      await Promise.all([load.end(), scans.end(), leavers.end()])
      await waitUntil('the service to be ready again', () => isReady(installation.url), drainMs)
      const waits = async () => ((await installation.operate('jobs')) as { waiting: number; running: number }).waiting
      await waitUntil('all jobs to be complete', async () => (await waits()) === 0, drainMs)
      const drainSeconds = Math.round((performance.now() - faultedAt) / 1000)

      const results = await completeAll(balances, load)
      checkVerdicts(load.orders, results, { pictureSignals })
      await checkLedger(balances, results)
      await checkDeliveries(receivers, secret, load.orders, results)
      const sync = await scans.check()
      const left = await checkLeftovers(installation, marker)
      const accepted = load.orders.filter(({ id }) => id !== undefined).length
      const observed = [
        `${list.length} faults in ${Math.round((faultedAt - startedAt) / 1000)} s`,
        `${accepted} acknowledged jobs, ${countFailed(results)} failed and refunded, refusals ${toText(load.refusals)}`,
        `last result ${drainSeconds} s after the last fault`,
        `${receivers.flatMap(({ received }) => received).length} webhooks received`,
        `${leavers.count()} clients left`,
        `scans ${sync}`,
        `${left} orphans removed`,
      ].join('; ')
      assert(accepted >= jobs, observed)
      assert(drainSeconds <= drainMs / 1000, observed)
      return observed
    } catch (error) {
      process.stderr.write(installation.log().slice(-8000))
      throw error
    } finally {
      await scans.end().catch(() => {})
      await leavers.end().catch(() => {})
      await load.abandon()
      await installation.remove()
      await origin.close()
      for (const receiver of receivers) await receiver.close()
    }
  },
}

/** Causes the faults evenly over the time that the jobs take. */
async function causeAll(list: Fault[], faults: Record<Fault, () => Promise<void>>, load: Load, startedAt: number) {
  const countAccepted = () => load.orders.filter(({ id }) => id !== undefined).length
  for (const [n, fault] of list.entries()) {
    await Promise.race([faults[fault](), load.running])
    const enough = ((n + 1) * jobs) / list.length
    const isOver = () => countAccepted() >= enough || performance.now() - startedAt > maxMs
    await Promise.race([waitUntil(`${enough} acknowledged orders`, isOver, maxMs), load.running])
    if (n % 10 === 9) process.stdout.write(`${n + 1} faults, ${countAccepted()} acknowledged jobs\n`)
  }
}

type Around = { fill(): Promise<void> | undefined; empty(): void; setReaction(reaction: Reaction): void }

function makeFaults(installation: Installation, { fill, empty, setReaction }: Around) {
  const { faults } = installation
  const findUnpacker = () => findChildren(installation.pid(), '/unpack/child/').at(-1)
  const findImages = () => findChildren(installation.pid(), '/nsfw/child/').at(-1)
  const findClamd = () => findChild(installation.pid(), 'clamd')
  const findBackend = () => findChildren(installation.findPostmaster() ?? 0, '[local]').at(-1)
  const signal = (find: () => number | undefined, name: NodeJS.Signals) => {
    const pid = find()
    // A process that is being replaced at this moment needs no fault.
    if (pid !== undefined) trySignal(pid, name)
    return pid
  }
  const stopFor = async (ms: number, find: () => number | undefined) => {
    const pid = signal(find, 'SIGSTOP')
    await pause(ms)
    if (pid !== undefined) trySignal(pid, 'SIGCONT')
  }
  const reactFor = async (ms: number, reaction: Reaction) => {
    setReaction(reaction)
    await pause(ms)
    setReaction({ status: 204 })
  }
  return {
    'service killed': faults.service,
    'everything killed': faults.everything,
    'clamd killed': faults.clamd,
    'database killed': faults.database,
    'connection killed': faults.connection,
    'unpacker killed': async () => void signal(findUnpacker, 'SIGKILL'),
    'image process killed': async () => void signal(findImages, 'SIGKILL'),
    'service stopped for a while': () => stopFor(5000, installation.pid),
    'clamd stopped for a while': () => stopFor(5000, findClamd),
    'unpacker stopped': async () => void signal(findUnpacker, 'SIGSTOP'),
    'image process stopped': async () => void signal(findImages, 'SIGSTOP'),
    'database stopped for a while': () => stopFor(5000, installation.findPostmaster),
    'connection stopped for a while': () => stopFor(8000, findBackend),
    async 'disk full'() {
      await fill()
      await pause(5000)
      empty()
    },
    'receivers down': () => reactFor(5000, 'drop'),
    'receivers slow': () => reactFor(5000, 'hang'),
    'receivers refusing': () => reactFor(5000, { status: 500 }),
    async restart() {
      await installation.stop()
      await installation.start()
    },
  } satisfies Record<Fault, () => Promise<void>>
}

function trySignal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Clients of an account of their own that close the connection in the middle of an upload or right after it. */
async function startLeavers({ url, operate }: Pick<Installation, 'url' | 'operate'>) {
  const account = (await operate('accounts', 'create', '--name', 'leavers', '--plan', 'unlimited')) as {
    api_key: string
  }
  const body = Buffer.from(toForm([filePart(Buffer.alloc(100_000, 'left '))]))
  const head = `POST /v1/malware/submit/file HTTP/1.1\r\nHost: assay\r\nX-API-Key: ${account.api_key}\r\nContent-Type: ${formType}\r\nContent-Length: ${body.length}\r\n\r\n`
  const { port } = new URL(url)
  let count = 0
  let isOver = false
  const running = (async () => {
    while (!isOver) {
      const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
      socket.write(head)
      socket.write(body.subarray(0, count % 2 === 0 ? 30_000 : body.length))
      await pause(300)
      socket.destroy()
      count++
    }
  })()
  return {
    apiKey: account.api_key,
    count: () => count,
    async end() {
      isOver = true
      await running
    },
  }
}
