import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { openEmbedded } from '../../packages/server/src/database/embedded/open-embedded.ts'
import { makeScanStore } from '../../packages/server/src/database/scan-store.ts'
import { newScanId } from '../../packages/server/src/domain/scans/scan.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import type { Row } from './results.ts'
import { type Archive, openArchive } from './stored-archive.ts'

const sizes = [1_000, 100_000, 1_000_000]
const callers = 16
/** Many short turns and the median of their ratios, so that other work of the machine affects all sides equally. */
const rounds = 15
const turnMs = 500

/** Reading a result and charging for a scan, with few and with many stored results. */
export async function benchStored(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const log = makeLogger({ level: 'warn', region: 'bench' })
  const server = await openEmbedded({ dataDir, as: 'command', log })
  const archives: Archive[] = []
  try {
    for (const size of sizes) archives.push(await openArchive(server.url, size, log))
    const weighed = await Promise.all(archives.slice(-1).map(weigh))
    const sides = archives.map((archive) => ({ size: archive.size, read: newTimes(), charge: newTimes(), archive }))
    for (const { archive } of sides) await runAll(archive, newTimes(), newTimes(), 500)
    for (let round = 0; round < rounds; round++) {
      // The order alternates, so that no side is always measured in the busier moment.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        await runAll(side.archive, side.read, side.charge, turnMs)
      }
    }
    const [least, ...more] = sides
    if (least === undefined) return []
    return [
      ...more.flatMap((side) => [
        ...toRows('result reads', side.size, side.read, least.read),
        ...toRows('charges', side.size, side.charge, least.charge),
      ]),
      ...weighed,
    ]
  } finally {
    for (const archive of archives) await archive.close()
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Size on disk of rows, indexes and free space, before rows are added. */
async function weigh({ size, database }: Archive): Promise<Row> {
  const { rows } = await database.pool.query<{ scans: string }>(`
    select sum(pg_total_relation_size(inhrelid)) as scans from pg_inherits where inhparent = 'scans'::regclass`)
  const each = (bytes = '0') => `${Math.round(Number(bytes) / size)} bytes`
  return {
    what: `what each of ${size} stored results takes, with indexes`,
    ours: each(rows[0]?.scans),
    against: '',
    ratio: undefined,
    wanted: '',
  }
}

type Times = { took: number[]; perSecond: number[] }
const newTimes = (): Times => ({ took: [], perSecond: [] })

async function runAll(archive: Archive, read: Times, charge: Times, ms: number) {
  const [scans, gate] = [makeScanStore(archive.database), makeAdmissionGate(archive.database)]
  await run(read, ms, async () => {
    const id = archive.ids[Math.floor(Math.random() * archive.ids.length)] ?? ''
    if ((await scans.findScan(archive.accountId, 'malware', id)) === undefined) throw new Error('A result is missing')
  })
  await run(charge, ms, async () => {
    const { outcome } = await gate.admit({ keyDigest: archive.keyDigest, countsRequest: true, scan: newScan() })
    if (outcome !== 'admitted') throw new Error(`The gate answers ${outcome}`)
  })
}

async function run(times: Times, ms: number, work: () => Promise<void>) {
  const start = performance.now()
  const before = times.took.length
  const call = async () => {
    for (let at = performance.now(); at - start < ms; ) {
      await work()
      const now = performance.now()
      times.took.push(now - at)
      at = now
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  times.perSecond.push(((times.took.length - before) * 1000) / (performance.now() - start))
}

function toRows(what: string, size: number, many: Times, few: Times): Row[] {
  const say = ({ took }: Times) =>
    `p50 ${findShare(took, 0.5).toFixed(2)} ms, p99 ${findShare(took, 0.99).toFixed(1)} ms`
  const sayRate = ({ perSecond }: Times) => `${Math.round(findShare(perSecond, 0.5))}/s`
  const name = `${what}, ${callers} callers, ${size} results stored`
  const ratios = many.perSecond.map((rate, round) => rate / (few.perSecond[round] ?? rate))
  return [
    {
      what: name,
      ours: sayRate(many),
      against: `${sizes[0]}: ${sayRate(few)}`,
      ratio: findShare(ratios, 0.5),
      wanted: 'about 1',
    },
    {
      what: name,
      ours: say(many),
      against: `${sizes[0]}: ${say(few)}`,
      ratio: findShare(many.took, 0.5) / findShare(few.took, 0.5),
      wanted: 'about 1',
    },
  ]
}

const findShare = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

const newScan = () => ({
  id: newScanId(new Date()),
  kind: 'malware' as const,
  mode: 'sync' as const,
  region: 'bench',
  status: 'clean' as const,
  contentLength: 1024,
  contentType: 'text/plain',
  contentName: 'bench.txt',
  metadata: {},
  signals: [],
  createdAt: new Date(),
  completedAt: new Date(),
})
