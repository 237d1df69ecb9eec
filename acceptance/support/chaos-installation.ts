import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from './free-port.ts'
import { copyPreparedDatabase } from './prepared-database.ts'
import { findChild, findChildren, findProcesses } from './processes.ts'
import { type Service, startService } from './start-service.ts'
import { waitUntil } from './wait-until.ts'

export type Fault = 'service' | 'everything' | 'clamd' | 'database' | 'connection'

type Options = {
  /** Called with the data directory before the first start; may return a function that undoes the preparation. */
  prepare?: ((dataDir: string) => undefined | (() => void)) | undefined
  /** Options and program of `startService`; see start-service.ts. */
  options?: string[] | undefined
  under?: string[] | undefined
}

/** An installation with its own database and a fixed address, whose parts can be killed at any time. */
export async function openInstallation(settings: NodeJS.ProcessEnv, { prepare, options, under }: Options = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-chaos-'))
  const dataDir = join(dir, 'data')
  const temporaryDir = join(dir, 'tmp')
  mkdirSync(temporaryDir, { mode: 0o1777 })
  mkdirSync(dataDir, { mode: 0o711 })
  const undo = prepare?.(dataDir)
  copyPreparedDatabase(dataDir)
  const port = String(await findFreePort())
  const own = { ASSAY_DATA_DIR: dataDir, ASSAY_DATABASE_URL: '', ASSAY_PORT: port, ASSAY_METRICS_PORT: '0' }
  const start = () => startService({ ...own, TMPDIR: temporaryDir, ...settings }, 'kept', { options, under })
  let service: Service = await start()
  let oldLogs = ''

  const listProcesses = () => findProcesses(dataDir)
  const findPostmaster = () => findProcesses(join(dataDir, 'postgres', 'cluster'))[0]

  async function killService() {
    await service.stop('SIGKILL')
    oldLogs += service.log()
  }

  /** Kills the process as soon as it is found. */
  async function killFound(what: string, find: () => number | undefined) {
    await waitUntil(`${what} to be there`, () => kill(find()))
  }

  const faults: Record<Fault, () => Promise<void>> = {
    async service() {
      await killService()
      service = await start()
    },
    async everything() {
      await killService()
      for (const pid of listProcesses()) kill(pid)
      service = await start()
    },
    clamd: () => killFound('clamd', () => findChild(service.pid, 'clamd')),
    database: () => killFound('the database', findPostmaster),
    connection: () =>
      killFound('a connection to the database', () => findChildren(findPostmaster() ?? 0, '[local]').at(-1)),
  }

  return {
    url: service.url,
    dataDir,
    temporaryDir,
    faults,
    listProcesses,
    findPostmaster,
    operate: (...args: string[]) => service.operate(...args),
    /** Process id of the service that runs now. */
    pid: () => service.pid,
    log: () => oldLogs + service.log(),
    kill: killService,
    async start() {
      service = await start()
    },
    async stop() {
      await service.stop()
      oldLogs += service.log()
    },
    /** Ends everything that still runs, and removes the files. */
    async remove() {
      await service.stop('SIGKILL')
      for (const pid of listProcesses()) kill(pid)
      undo?.()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export type Installation = Awaited<ReturnType<typeof openInstallation>>

/** Returns false when the process has already ended. */
function kill(pid: number | undefined): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
