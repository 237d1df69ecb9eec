import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Installation, openInstallation } from '../../acceptance/support/chaos-installation.ts'
import { type Order, startLoad } from '../../acceptance/support/chaos-load.ts'
import { newRandom } from '../../acceptance/support/chaos-random.ts'
import { faketimeLibrary, lacksFaketime } from '../../acceptance/support/faketime.ts'
import { openOrigin, world } from '../../acceptance/support/origin.ts'
import { findChild, findChildren } from '../../acceptance/support/processes.ts'
import { openReceiver } from '../../acceptance/support/receiver.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import type { Case } from '../case.ts'
import { startScans } from '../scans.ts'

const minutes = 20
const sampleMs = 10_000
/** Growth that a process may have in the second half of the run, by the slope of its samples. */
const maxGrowthMegabytes = 30
const apiKey = 'soak-test-key'

/** Memory in megabytes by process, and counts of files. */
type Sample = { at: number; values: Record<string, number> }

export const soak: Case = {
  about: `${minutes} minutes of steady load: memory of each process, files, and the database, before and after retention`,
  async run() {
    const lack = lacksFaketime()
    if (lack !== false) throw new Error(lack)
    const dir = mkdtempSync(join(tmpdir(), 'assay-soak-steady-'))
    const environment = join(dir, 'environment')
    writeFileSync(environment, '')
    const contents = new Map<string, Buffer>()
    const origin = await openOrigin((request, response) => void response.end(contents.get(request.url?.slice(1) ?? '')))
    const receiver = await openReceiver()
    const installation = await openInstallation(
      {
        ASSAY_BOOTSTRAP_KEY: apiKey,
        ASSAY_OUTBOUND_ALLOW: world,
        ASSAY_NSFW_PROFILE: 'fast',
        ASSAY_RESULT_DAYS: '1',
        ASSAY_LOG_LEVEL: 'warn',
      },
      { under: ['sh', '-c', `. ${environment}; exec "$@"`, 'sh'] },
    )
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
      const scans = await startScans({ ...installation })
      await pause(sampleMs)
      const before = measureDatabase(installation.dataDir)
      const samples = await sample(installation)
      await Promise.all([load.end(), scans.end()])
      await waitUntil('all jobs to be complete', async () => (await countWaiting(installation)) === 0, 120_000)
      const total = load.orders.length + scans.count()
      const after = measureDatabase(installation.dataDir)

      // Two days later for the service and PostgreSQL alike, retention removes everything.
      await installation.stop()
      writeFileSync(environment, `export LD_PRELOAD=${faketimeLibrary} FAKETIME=+3d DONT_FAKE_MONOTONIC=1\n`)
      await installation.start()
      const isGivenBack = () => measureDatabase(installation.dataDir) < after - (after - before) / 2
      await waitUntil('retention to give back half of the space', isGivenBack, 300_000)
      await pause(70_000)
      const kept = measureDatabase(installation.dataDir)

      const slopes = toSlopes(samples)
      const observed = [
        `${total} scans in ${minutes} minutes`,
        `MB an hour: ${slopes.map(({ name, slope, last }) => `${name} ${slope.toFixed(1)} (at ${last.toFixed(0)})`).join(', ')}`,
        `database ${toMegabytes(before)} MB before, ${toMegabytes(after)} MB after, ${toMegabytes(((after - before) / total) * 10_000)} MB per 10,000 scans`,
        `${toMegabytes(kept)} MB after retention`,
      ].join('; ')
      const growing = slopes.filter(({ slope }) => (slope * minutes) / 2 / 60 > maxGrowthMegabytes)
      assert.deepEqual(growing, [], observed)
      return observed
    } finally {
      await installation.remove()
      await origin.close()
      await receiver.close()
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

const toMegabytes = (bytes: number) => Math.round(bytes / 2 ** 20)
const countWaiting = async ({ operate }: Installation) => ((await operate('jobs')) as { waiting: number }).waiting

async function sample({ pid, dataDir, findPostmaster }: Installation): Promise<Sample[]> {
  const samples: Sample[] = []
  const endsAt = performance.now() + minutes * 60_000
  while (performance.now() < endsAt) {
    const postmaster = findPostmaster() ?? 0
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

/** Size of the tables and indexes in bytes; the write-ahead log has a size of its own. */
const measureDatabase = (dataDir: string): number => measure(join(dataDir, 'postgres', 'cluster', 'base'))

function measure(dir: string): number {
  return readdirSync(dir, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return sum + measure(path)
    return sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  }, 0)
}

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
