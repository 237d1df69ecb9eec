import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbedded } from '../../packages/server/src/database/embedded/open-embedded.ts'
import { makeScanHistory } from '../../packages/server/src/database/scan-store.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { toMedian } from './children.ts'
import type { Row } from './results.ts'
import { openArchive } from './stored-archive.ts'

const size = 100_000
const pageSize = 50
const rounds = 20

/** Pages of the console's history of an account with 100,000 results, against its first page without a filter. */
export async function benchHistory(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const log = makeLogger({ level: 'warn', region: 'bench' })
  const server = await openEmbedded({ dataDir, as: 'command', log })
  const archive = await openArchive(server.url, size, log)
  const history = makeScanHistory(archive.database)
  try {
    const [oldest] = (await archive.database.pool.query(oldestScan)).rows as OldScan[]
    assert.ok(oldest)
    const searches: [name: string, filter: Parameters<typeof history.list>[1], count: number, before?: string][] = [
      ['the first page', {}, pageSize],
      ['the page after 90,000 results', {}, pageSize, oldest.before],
      ['the oldest result by a part of its name', { name: oldest.name.slice(6, 14) }, 1],
      ['the oldest result by its hash', { sha256: oldest.hash }, 1],
      ['a name that no result has', { name: 'no-such-name' }, 0],
      ['threats, of which there are none', { status: 'threat' }, 0],
    ]
    const times = searches.map((): number[] => [])
    for (let round = 0; round < rounds; round++) {
      for (const [n, [name, filter, count, before]] of searches.entries()) {
        const startedAt = performance.now()
        const page = await history.list(archive.accountId, filter, { limit: pageSize, before })
        times[n]?.push(performance.now() - startedAt)
        assert.equal(page.length, count, name)
      }
    }
    const first = toMedian(times[0] ?? [])
    return searches.map(([name], n) => ({
      what: `history of ${size} results: ${name}`,
      ours: `median ${toMedian(times[n] ?? []).toFixed(1)} ms, longest ${Math.max(...(times[n] ?? [])).toFixed(1)} ms`,
      against: `the first page: ${first.toFixed(1)} ms`,
      ratio: toMedian(times[n] ?? []) / first,
      wanted: 'under 300 ms',
    }))
  } finally {
    await archive.close()
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

type OldScan = { name: string; hash: string; before: string }

const oldestScan = `
select content_name as name, metadata ->> 'hash_sha256' as hash,
  (select id from scans order by created_at desc, id desc offset 90000 limit 1) as before
from scans order by created_at limit 1
`
