import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../../acceptance/support/start-service.ts'
import { listTree, readCommandLine, readName } from './processes.ts'
import type { Row } from './results.ts'

/** Cold and warm start to ready, and what the service and its database hold in memory when nothing happens. */
export async function benchStart(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  try {
    const first = await timeStart(dataDir)
    await first.service.stop()
    const warm = await timeStart(dataDir)
    await sleep(5000)
    const tree = listTree(warm.service.pid)
    const all = sumMegabytes(tree)
    const megabytes = sumMegabytes(tree.filter((pid) => !isEngine(pid)))
    await warm.service.stop()
    return [
      {
        what: 'first start to ready',
        ours: `${first.seconds.toFixed(2)} s`,
        against: '',
        ratio: undefined,
        wanted: 'at most 15 s',
      },
      {
        what: 'warm start to ready',
        ours: `${warm.seconds.toFixed(2)} s`,
        against: '',
        ratio: undefined,
        wanted: 'at most 3 s',
      },
      {
        what: 'idle memory, service and database',
        ours: `${Math.round(megabytes)} MB`,
        against: '',
        ratio: undefined,
        wanted: 'at most 250 MB',
      },
      {
        what: 'idle memory, with ClamAV on our signatures alone and one image process',
        ours: `${Math.round(all)} MB`,
        against: '',
        ratio: undefined,
        wanted: '',
      },
    ]
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function timeStart(dataDir: string) {
  const start = performance.now()
  const service = await startService({ ASSAY_DATA_DIR: dataDir })
  return { service, seconds: (performance.now() - start) / 1000 }
}

const isEngine = (pid: number) => readName(pid) === 'clamd' || readCommandLine(pid).includes('/engines/')

const sumMegabytes = (pids: number[]) => pids.reduce((sum, pid) => sum + readMegabytes(pid), 0)

/** The proportional set size: memory that processes share counts once. */
function readMegabytes(pid: number): number {
  const pss = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
  return Number(pss ?? 0) / 1024
}
