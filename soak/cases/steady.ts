import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Installation, openInstallation } from '../../acceptance/support/chaos-installation.ts'
import { type Order, startLoad } from '../../acceptance/support/chaos-load.ts'
import { newRandom } from '../../acceptance/support/chaos-random.ts'
import { openFakeClock } from '../../acceptance/support/faketime.ts'
import { openOrigin, world } from '../../acceptance/support/origin.ts'
import { findChild, findChildren, findProcesses } from '../../acceptance/support/processes.ts'
import { openReceiver } from '../../acceptance/support/receiver.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import type { Case } from '../case.ts'
import { startScans } from '../scans.ts'

const minutes = 20
const sampleMs = 10_000
/** The sweeper, and autovacuum, look for work every minute. */
const sweepMs = 70_000
/** Megabytes of memory, or files, that may be added in the second half of the run, by the slope of the samples. */
const maxGrowth = 30
const apiKey = 'soak-test-key'

/** Memory in megabytes by process, and counts of files. */
type Sample = { at: number; values: Record<string, number> }

/** PostgreSQL has a clock of its own, which goes three days ahead at the end: retention goes by that clock alone. */
export const soak: Case = {
  about: `${minutes} minutes of steady load: memory of each process, files, and the database, before and after retention`,
  async run() {
    const clock = openFakeClock('+0')
    const postgres = await openTestPostgres([], clock.env)
    const pool = new pg.Pool({ connectionString: postgres.url, max: 1 })
    const contents = new Map<string, Buffer>()
    const origin = await openOrigin((request, response) => void response.end(contents.get(request.url?.slice(1) ?? '')))
    const receiver = await openReceiver()
    const installation = await openInstallation({
      ASSAY_DATABASE_URL: postgres.url,
      ASSAY_BOOTSTRAP_KEY: apiKey,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_NSFW_PROFILE: 'fast',
      ASSAY_RESULT_DAYS: '1',
      // Full after a minute, so that its growth is not taken for a leak.
      ASSAY_VERDICT_CACHE: '1000',
      ASSAY_LOG_LEVEL: 'warn',
    })
    try {
      const load = startLoad({
        url: installation.url,
        apiKey,
        originUrl: origin.url,
        receiverUrls: [receiver.url],
        marker: `marker-${randomBytes(16).toString('hex')}`,
        random: newRandom(1),
        clients: 4,
        maxBytes: 200_000,
        picture: readFileSync(new URL('../../acceptance/support/pictures/colours.jpg', import.meta.url)),
        publish: (order: Order) => contents.set(order.name, order.content),
      })
      const scans = await startScans(installation)
      await pause(sampleMs)
      const before = await measureDatabase(pool)
      const samples = await sample(installation, postgres.dir)
      await Promise.all([load.end(), scans.end()])
      await waitUntil('all jobs to be complete', async () => (await countWaiting(installation)) === 0, 120_000)
      const total = load.orders.length + scans.count()
      const after = await measureDatabase(pool)
      clock.set('+3d')
      await waitUntil('retention to delete all results', async () => (await countResults(pool)) === 0, 300_000)
      // Space comes back by partitions that are dropped, and by autovacuum.
      const isGivenBack = async () => (await measureDatabase(pool)) < (before + after) / 2
      await waitUntil('half of the space to be given back', isGivenBack, 300_000)
      await pause(sweepMs)
      const kept = await measureDatabase(pool)

      const slopes = toSlopes(samples)
      const observed = [
        `${total} scans in ${minutes} minutes`,
        `by the hour: ${slopes.map(({ name, slope, last }) => `${name} ${slope.toFixed(1)} (at ${last.toFixed(0)})`).join(', ')}`,
        `database ${toMegabytes(before)} MB before, ${toMegabytes(after)} MB after`,
        `${toMegabytes(((after - before) / total) * 10_000)} MB per 10,000 scans`,
        `${toMegabytes(kept)} MB after retention`,
      ].join('; ')
      const growing = slopes.filter(({ slope }) => (slope * minutes) / 2 / 60 > maxGrowth)
      assert.deepEqual(growing, [], observed)
      return observed
    } catch (error) {
      process.stderr.write(installation.log().slice(-4000))
      throw error
    } finally {
      await installation.remove()
      await pool.end()
      await postgres.close()
      await origin.close()
      await receiver.close()
      clock.remove()
    }
  },
}

const toMegabytes = (bytes: number) => Math.round(bytes / 2 ** 20)
const countWaiting = async ({ operate }: Installation) => ((await operate('jobs')) as { waiting: number }).waiting

async function sample({ pid, dataDir }: Installation, postgresDir: string): Promise<Sample[]> {
  const samples: Sample[] = []
  const endsAt = performance.now() + minutes * 60_000
  while (performance.now() < endsAt) {
    const [postmaster = 0] = findProcesses(postgresDir)
    samples.push({
      at: performance.now(),
      values: {
        service: readPss([pid()]),
        clamd: readPss([findChild(pid(), 'clamd')]),
        unpackers: readPss(findChildren(pid(), '/unpack/child/')),
        'image processes': readPss(findChildren(pid(), '/nsfw/child/')),
        PostgreSQL: readPss([postmaster, ...findChildren(postmaster, 'postgres')]),
        'open files': readdirSync(`/proc/${pid()}/fd`).length,
        'files in the data directory': readdirSync(dataDir, { recursive: true }).length,
      },
    })
    await pause(sampleMs)
  }
  return samples
}

/** Memory of processes with shared pages counted once, in megabytes. */
function readPss(pids: (number | undefined)[]): number {
  return pids.reduce<number>((sum, pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
      return sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024
    } catch {
      return sum
    }
  }, 0)
}

/** Size of tables and indexes in bytes; the write-ahead log has a size of its own. */
const measureDatabase = (pool: pg.Pool) => count(pool, 'select pg_database_size(current_database())::float8 as count')
const countResults = (pool: pg.Pool) => count(pool, 'select count(*)::int as count from scans')

const count = async (pool: pg.Pool, sql: string): Promise<number> =>
  (await pool.query<{ count: number }>(sql)).rows[0]?.count ?? 0

/** Slope of each value by the hour, by least squares over the second half of the samples. */
function toSlopes(samples: Sample[]) {
  const half = samples.slice(samples.length / 2)
  const names = Object.keys(half[0]?.values ?? {})
  return names.map((name) => {
    const points = half.map(({ at, values }) => ({ x: at / 3_600_000, y: values[name] ?? 0 }))
    const x = points.reduce((sum, point) => sum + point.x, 0) / points.length
    const y = points.reduce((sum, point) => sum + point.y, 0) / points.length
    const slope =
      points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0) /
      points.reduce((sum, point) => sum + (point.x - x) ** 2, 0)
    return { name, slope, last: points.at(-1)?.y ?? 0 }
  })
}
