import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { checkLedger, checkVerdicts, completeAll, countFailed } from '../../acceptance/support/chaos-checks.ts'
import { type Order, startLoad } from '../../acceptance/support/chaos-load.ts'
import { newRandom, type Random } from '../../acceptance/support/chaos-random.ts'
import { openOrigin } from '../../acceptance/support/origin.ts'
import { openReceiver } from '../../acceptance/support/receiver.ts'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { openTestS3 } from '../../scripts/test-s3.ts'
import { toText } from '../counts.ts'
import { startScans } from '../scans.ts'
import { watchDeliveries } from './deliveries.ts'
import { checkLeftovers } from './leftovers.ts'
import { apiKey, type Nodes, openNodes, secret } from './nodes.ts'
import { startPictures } from './pictures.ts'
import { startRateLimited } from './rate-limit.ts'
import { openS3Faults, type S3Faults } from './s3-faults.ts'
import { watchTakeovers } from './takeovers.ts'

export type Scene = {
  nodes: Nodes
  s3: S3Faults
  postgres: Awaited<ReturnType<typeof openTestPostgres>>
  random: Random
  /** Call this when a node was killed. */
  onKilled(): void
}

/**
 * Puts two API and two worker nodes under every kind of load during a fault and checks the invariants: nothing that
 * was accepted is lost, nothing is charged twice, ledger and balance agree, no threat is called clean, every callback
 * arrived with a valid signature, the rate limit was exact over all nodes, work of a dead node was taken over within
 * 30 s, and no content is left. `disturb` causes the fault and returns observations.
 */
export async function underClusterLoad(disturb: (scene: Scene) => Promise<string | undefined>): Promise<string> {
  const random = newRandom(Number(process.env.ASSAY_TEST_SEED ?? 1))
  const closers: (() => unknown)[] = []
  try {
    const cluster = await openCluster(random, closers)
    const { nodes, s3, postgres } = cluster
    const loads = await startLoads(cluster, random, closers)
    const takeovers = watchTakeovers(cluster.pool)
    try {
      await Promise.race([pause(3000), loads.load.running])
      const disturbed = await Promise.race([
        disturb({ nodes, s3, postgres, random, onKilled: takeovers.start }),
        loads.load.running.then(() => undefined),
      ])
      await nodes.whenReady()
      const observations = [disturbed, await takeovers.end()].filter((text) => text !== undefined)
      return [...observations, ...(await checkLoads(cluster, loads))].join('; ')
    } catch (error) {
      for (const { name, installation } of nodes.nodes) {
        process.stderr.write(`--- ${name}\n${installation.log().slice(-3000)}\n`)
      }
      throw error
    }
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}

/** Opens origin, receiver, database, S3 and nodes. Some downloads are slow, so that there is always work under way. */
async function openCluster(random: Random, closers: (() => unknown)[]) {
  const addCloser = async <T extends { close(): unknown }>(part: Promise<T>) => {
    const result = await part
    closers.push(result.close)
    return result
  }
  const contents = new Map<string, Buffer>()
  const origin = await addCloser(
    openOrigin(async (request, response) => {
      if (random.happens(0.3)) await pause(random.between(500, 4000))
      response.end(contents.get(request.url?.slice(1) ?? ''))
    }),
  )
  const receiver = await addCloser(openReceiver(() => ({ status: random.happens(0.03) ? 500 : 204 })))
  const postgres = await addCloser(openTestPostgres())
  const store = await addCloser(openTestS3())
  const s3 = await addCloser(openS3Faults(store.endpoint))
  const blobsUrl = store.toBlobsUrl('soak').replace(store.endpoint, s3.url)
  const nodes = await addCloser(openNodes({ ...store, databaseUrl: postgres.url, blobsUrl }))
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 })
  pool.on('error', () => {})
  closers.push(() => pool.end())
  await nodes.whenReady()
  return { contents, origin, receiver, postgres, store, s3, nodes, pool }
}

type Cluster = Awaited<ReturnType<typeof openCluster>>

async function startLoads({ contents, origin, receiver, nodes }: Cluster, random: Random, closers: (() => unknown)[]) {
  const marker = `marker-${randomBytes(16).toString('hex')}`
  const urls = nodes.apis.map(({ url }) => url)
  const [{ url, operate }] = nodes.apis
  const load = startLoad({
    url,
    moreUrls: urls.slice(1),
    apiKey,
    originUrl: origin.url,
    receiverUrls: [receiver.url],
    marker,
    random,
    clients: 4,
    publish: (order: Order) => contents.set(order.name, order.content),
  })
  closers.push(load.abandon)
  const scans = await Promise.all(nodes.apis.map((api) => startScans(api)))
  const pictures = await startPictures({ urls, receiverUrl: receiver.url, operate })
  const limited = await startRateLimited({ urls, operate })
  const parts = [...scans, pictures, limited]
  closers.push(() => Promise.allSettled(parts.map((part) => part.end())))
  const deliveries = watchDeliveries(receiver, (path) => (path.startsWith('/picture-') ? pictures.secret : secret))
  closers.push(deliveries.end)
  return { marker, balances: { url, operate, apiKey }, load, scans, pictures, limited, parts, deliveries }
}

/** Ends all load, checks every invariant, and returns the figures as sentences. */
async function checkLoads({ nodes, postgres, store, s3 }: Cluster, loads: Awaited<ReturnType<typeof startLoads>>) {
  const { load, parts, balances, scans, pictures, limited, deliveries, marker } = loads
  await load.end()
  await Promise.all(parts.map((part) => part.end()))
  const results = await completeAll(balances, load)
  checkVerdicts(load.orders, results)
  await checkLedger(balances, results)
  const pictureResults = await pictures.check()
  const called = new Set(load.orders.filter((order) => order.callbackUrl !== undefined).map(({ name }) => name))
  const expected = [...results].filter(([, { content_name }]) => called.has(String(content_name)))
  const submitted = [...pictureResults.results].filter(([, result]) => pictures.isSubmitted(result))
  const delivered = await deliveries.check(new Map([...expected, ...submitted]))
  const scanTexts = await Promise.all(scans.map((load) => load.check()))
  return [
    `${results.size} jobs (${countFailed(results)} failed and refunded), refusals ${toText(load.refusals)}`,
    ...scanTexts.map((text, i) => `scans on API node ${i + 1}: ${text}`),
    pictureResults.text,
    delivered,
    await limited.check(),
    await checkLeftovers({
      nodes,
      s3,
      marker,
      dirs: [postgres.dir, store.filesDir],
      listNames: () => store.listNames('soak'),
    }),
  ]
}
