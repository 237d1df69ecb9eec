import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { openEmbedded } from '../../packages/server/src/database/embedded/open-embedded.ts'
import { makeHashListStore } from '../../packages/server/src/database/hash-list-store.ts'
import { makeRevisionStore } from '../../packages/server/src/database/revision-store.ts'
import { decideRevision, makeRevisionBody } from '../../packages/server/src/domain/knowledge/hash-lists.ts'
import { newScanId } from '../../packages/server/src/domain/scans/scan.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { newTestScan } from '../../packages/server/test/support/test-scan.ts'
import { readCpuSeconds } from './processes.ts'
import type { Row } from './results.ts'
import { openArchive } from './stored-archive.ts'

const size = Number(process.env.ASSAY_BENCH_HASHES ?? 5_000_000)
const results = Number(process.env.ASSAY_BENCH_RESULTS ?? 100_000)
const lookups = 20_000
const main = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))
const megabyte = 1024 * 1024

/** Import and lookup of a list of 5 million hashes, its comparison with stored results, and the cost of storing one. */
export async function benchHashes(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const log = makeLogger({ level: 'warn', region: 'bench' })
  const server = await openEmbedded({ dataDir, as: 'command', log })
  const archive = await openArchive(server.url, results, log)
  const { pool } = archive.database
  try {
    const { rows: stored } = await pool.query<{ hash: string }>(
      `select metadata ->> 'hash_sha256' as hash from scans order by random() limit 3`,
    )
    const file = join(dataDir, 'hashes.csv')
    const known = await writeList(file, [stored[0]?.hash ?? '', stored[1]?.hash ?? ''])
    const url = server.url.replace(/\/\w+(?=\?|$)/, `/stored_${results}`)
    const idle = await runCommand(dataDir, url, ['hashes', 'list'])
    const command = ['hashes', 'import', file, '--list', 'bench', '--verdict', 'bad', '--name-column', 'name']
    const imported = await runCommand(dataDir, url, command)

    const store = makeHashListStore(archive.database)
    const rssBefore = process.memoryUsage.rss()
    const times = await lookUp(store.findHash, known)
    const empty = await timeEmpty(() => pool.query({ name: 'empty', text: 'select 1' }))
    const grown = process.memoryUsage.rss() - rssBefore
    const large = await revise(archive.database, 2)
    const id = await store.beginImport({ name: 'small', verdict: 'bad', origin: 'import', createdBy: 'bench' })
    await store.addHashes(id, { rows: Buffer.from(`\\x${stored[2]?.hash}\t\n`), count: 1 })
    await store.sortHashes(id)
    await store.activate(id)
    const small = await revise(archive.database, 1)
    const stored64 = await compareStoring(archive)
    return [
      {
        what: `import of ${size} hashes`,
        ours: `${(imported.ms / 1000).toFixed(0)} s, ${imported.cpuSeconds.toFixed(1)} s of processor time of the command`,
        against: '180 s',
        ratio: imported.ms / 180_000,
        wanted: 'below 1',
      },
      {
        what: 'memory of the import, at most',
        ours: `${(imported.peakBytes / megabyte).toFixed(0)} MB`,
        against: `a command that imports nothing: ${(idle.peakBytes / megabyte).toFixed(0)} MB`,
        ratio: imported.peakBytes / idle.peakBytes,
        wanted: 'less than 100 MB more',
      },
      {
        what: `lookup among ${size} hashes, one at a time`,
        ours: `p50 ${toPercentile(times, 0.5)} ms, p99 ${toPercentile(times, 0.99)} ms`,
        against: `a statement that reads nothing: p50 ${toPercentile(empty, 0.5)} ms, p99 ${toPercentile(empty, 0.99)} ms`,
        ratio: Number(toPercentile(times, 0.99)) / Number(toPercentile(empty, 0.99)),
        wanted: 'p99 below 1 ms',
      },
      {
        what: `growth of the process that looked up ${lookups} hashes`,
        ours: `${(grown / megabyte).toFixed(0)} MB`,
        against: '100 MB',
        ratio: grown / megabyte / 100,
        wanted: 'below 1',
      },
      toRevisionRow(`the list of ${size} hashes, 2 of them stored`, large),
      toRevisionRow('a list of one hash', small),
      {
        what: 'cost of a stored result for PostgreSQL, in batches of 64',
        ours: toCost(stored64.plain),
        against: `with an index by hash: ${toCost(stored64.indexed)}`,
        ratio: stored64.plain.microseconds / stored64.indexed.microseconds,
        wanted: '',
      },
    ]
  } finally {
    await archive.close()
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const toCost = ({ microseconds, walBytes }: Cost) =>
  `${microseconds.toFixed(0)} \u00b5s of processor time, ${walBytes.toFixed(0)} bytes of WAL`

const toRevisionRow = (what: string, { ms, cpuSeconds }: { ms: number; cpuSeconds: number }): Row => ({
  what: `revision of ${results} results by ${what}`,
  ours: `${(ms / 1000).toFixed(1)} s, of them ${cpuSeconds.toFixed(1)} s of processor time of PostgreSQL`,
  against: '',
  ratio: undefined,
  wanted: '',
})

/** Writes the file, with the given hashes in its middle, and returns some of its hashes. */
async function writeList(path: string, given: string[]): Promise<string[]> {
  const out = createWriteStream(path)
  const known: string[] = []
  out.write('sha256,name\n')
  const perPiece = 10_000
  for (let n = 0; n < size; n += perPiece) {
    const bytes = randomBytes(32 * perPiece)
    let text = n === 0 ? given.map((hash) => `${hash},Family.Given\n`).join('') : ''
    for (let row = n === 0 ? given.length : 0; row < perPiece; row++) {
      const hash = bytes.toString('hex', row * 32, row * 32 + 32)
      if (row % 250 === 7) known.push(hash)
      text += `${hash},Family.${row}\n`
    }
    if (!out.write(text)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
  return known
}

/** Runs a command of the operator's program, and watches the memory and processor time of its process. */
async function runCommand(dataDir: string, url: string, args: string[]) {
  const env = { ...process.env, ASSAY_DATA_DIR: dataDir, ASSAY_DATABASE_URL: url }
  const startedAt = performance.now()
  const child = spawn(process.execPath, [main, ...args, '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  let peakBytes = 0
  let cpuSeconds = 0
  const watch = setInterval(() => {
    try {
      const [, peak = '0'] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      peakBytes = Math.max(peakBytes, Number(peak) * 1024)
      const [, , , , , , , , , , , , , user = '0', system = '0'] = readFileSync(
        `/proc/${child.pid}/stat`,
        'utf8',
      ).split(' ')
      cpuSeconds = (Number(user) + Number(system)) / 100
    } catch {
      // The process has ended.
    }
  }, 20)
  const [code] = await once(child, 'exit')
  clearInterval(watch)
  assert.equal(code, 0, args.join(' '))
  return { ms: performance.now() - startedAt, peakBytes, cpuSeconds }
}

/** Looks up known and unknown hashes in turn, and returns the milliseconds of each, sorted. */
async function lookUp(find: (sha256: string) => Promise<unknown>, known: string[]): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < lookups; n++) {
    const isKnown = n % 2 === 0
    const hash = isKnown ? (known[randomInt(known.length)] ?? '') : randomBytes(32).toString('hex')
    const startedAt = performance.now()
    const found = await find(hash)
    times.push(performance.now() - startedAt)
    assert.equal(found !== undefined, isKnown)
  }
  return times.sort((a, b) => a - b)
}

/** Times of a statement that reads nothing, which tell what the machine and the connection add to a lookup. */
async function timeEmpty(run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < lookups; n++) {
    const startedAt = performance.now()
    await run()
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)
}

const toPercentile = (sorted: number[], share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(2)

type Pool = Awaited<ReturnType<typeof openArchive>>['database']['pool']

/** Processor time so far of the connections of this database. */
async function readPostgresSeconds(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where datname = current_database()',
  )
  return rows.reduce((sum, { pid }) => sum + readCpuSeconds(pid), 0)
}

/** Does the work that is due, as the worker does, and returns how long it took. */
async function revise(database: Parameters<typeof makeHashListStore>[0], expected: number) {
  const revisions = makeRevisionStore({ ...database, decide: decideRevision, makeBody: makeRevisionBody })
  const startedAt = performance.now()
  const cpuBefore = await readPostgresSeconds(database.pool)
  const [claimed] = await revisions.claim(600_000)
  assert(claimed)
  let revised = 0
  for (;;) {
    const piece = await revisions.runPiece(claimed)
    revised += piece.revised
    if (piece.state === 'done') break
  }
  assert.equal(revised, expected)
  return {
    ms: performance.now() - startedAt,
    cpuSeconds: (await readPostgresSeconds(database.pool)) - cpuBefore,
  }
}

type Cost = { microseconds: number; walBytes: number }

/** Stores results as scans do, without and with an index that would find results by their hash. */
async function compareStoring({ database, keyDigest }: Awaited<ReturnType<typeof openArchive>>) {
  const { pool } = database
  const gate = makeAdmissionGate({ pool })
  const store = () => {
    const [now, hash] = [new Date(), randomBytes(32).toString('hex')]
    const metadata = { hash_sha1: hash.slice(0, 40), hash_sha256: hash }
    const scan = newTestScan({ id: newScanId(now), status: 'clean', signals: [], completedAt: now, metadata })
    return gate.admit({ keyDigest, countsRequest: false, scan })
  }
  const measure = async (): Promise<Cost> => {
    for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 64 }, store))
    const readWal = async () =>
      (await pool.query<{ at: number }>(`select pg_current_wal_insert_lsn() - '0/0' as at`)).rows[0]?.at ?? 0
    const [cpu, wal] = [await readPostgresSeconds(pool), Number(await readWal())]
    const batches = 400
    for (let n = 0; n < batches; n++) await Promise.all(Array.from({ length: 64 }, store))
    const count = batches * 64
    return {
      microseconds: (((await readPostgresSeconds(pool)) - cpu) * 1e6) / count,
      walBytes: (Number(await readWal()) - wal) / count,
    }
  }
  const costs: { plain: Cost[]; indexed: Cost[] } = { plain: [], indexed: [] }
  // Both take turns, and the lowest cost counts: other work of the machine only adds to it.
  for (let round = 0; round < 3; round++) {
    costs.plain.push(await measure())
    await pool.query(
      `alter table scans add column bench_key bigint
         generated always as (hashtextextended(metadata ->> 'hash_sha256', 0)) stored;
       create index bench_hash on scans (bench_key, id) where kind = 'malware'`,
    )
    costs.indexed.push(await measure())
    await pool.query('alter table scans drop column bench_key')
  }
  const toLowest = (list: Cost[]): Cost => ({
    microseconds: Math.min(...list.map(({ microseconds }) => microseconds)),
    walBytes: Math.min(...list.map(({ walBytes }) => walBytes)),
  })
  return { plain: toLowest(costs.plain), indexed: toLowest(costs.indexed) }
}
