import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../../acceptance/support/start-service.ts'
import { listTree, readCommandLine, readName } from './processes.ts'
import type { Row } from './results.ts'

/** Duration of cold and warm starts, and memory of the idle service and its database. */
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
        what: 'npm start -- --test to ready, the second of its kind',
        ours: `${(await timeTestMode()).toFixed(2)} s`,
        against: '',
        ratio: undefined,
        wanted: 'about 1 s',
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

/** Start in test mode with the command of its document, including npm. */
async function timeTestMode(): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const start = async () => {
    const startedAt = performance.now()
    const env = { ...process.env, ASSAY_DATA_DIR: dataDir, ASSAY_PORT: '0' }
    const npm = spawn('npm', ['start', '--silent', '--', '--test'], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = new Promise((resolve) => npm.once('close', resolve))
    await new Promise((resolve) => npm.stdout.once('data', resolve))
    const seconds = (performance.now() - startedAt) / 1000
    process.kill(-(npm.pid ?? 0), 'SIGINT')
    await ended
    return seconds
  }
  try {
    await start()
    const times = [await start(), await start(), await start()]
    return times.toSorted((a, b) => a - b)[1] ?? 0
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const isEngine = (pid: number) => readName(pid) === 'clamd' || readCommandLine(pid).includes('/engines/')

const sumMegabytes = (pids: number[]) => pids.reduce((sum, pid) => sum + readMegabytes(pid), 0)

/** Reads the proportional set size, which counts shared memory once. */
function readMegabytes(pid: number): number {
  const pss = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
  return Number(pss ?? 0) / 1024
}
