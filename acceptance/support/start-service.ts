import { type SpawnOptions, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { dataRoot } from './data-root.ts'
import { copyPreparedDatabase } from './prepared-database.ts'
import { findProcesses, killAll } from './processes.ts'
import { findProgramFile, runProgram } from './run-program.ts'
import { waitUntil } from './wait-until.ts'

export type Service = {
  url: string
  metricsPort: number
  dataDir: string
  /** Process id, for tests that send signals. */
  pid: number
  /** Key of the first account, when this start created it. */
  apiKey: string
  webhookSecret: string
  /** Invitation of the first operator to the console, when there is no operator yet. */
  consoleLink: string
  /** Runs a command of the operator's program with --json; throws with its output when the command fails. */
  operate(...args: string[]): Promise<unknown>
  /** Everything that the service has logged so far. */
  log(): string
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Text from which another process makes the same object; see shared-service.ts. */
  handle: string
}

/** Settings of a service whose tests scan no images: it starts faster without the models. */
export const withoutImages = { ASSAY_NSFW_PROFILE: 'off' }

/** Longer than any start on a busy machine, and shorter than the time limit of a test. */
const startTimeoutMs = 100_000

/**
 * Starts the service as a user does, on free ports and, unless one is given, a new data directory. Benchmarks drop the
 * logs, because reading them costs more than writing them to a file. `options` are for `serve`; `under` is a program
 * that runs the service, with its arguments, and must replace itself by the service. A service that a test does not stop
 * ends with the test process and does not keep it alive.
 */
export async function startService(
  env: NodeJS.ProcessEnv,
  logs: 'kept' | 'dropped' = 'kept',
  { options = [], under = [] }: { options?: string[] | undefined; under?: string[] | undefined } = {},
): Promise<Service> {
  const ownDir = env.ASSAY_DATA_DIR === undefined
  const dataDir = env.ASSAY_DATA_DIR ?? mkdtempSync(join(dataRoot, 'assay-acceptance-'))
  // The mode that the service gives the directory when it creates it. In a directory that is closed to other users, the
  // database and clamd need a capability, and the start several processes more to find out.
  if (ownDir) chmodSync(dataDir, 0o711)
  if (ownDir && !env.ASSAY_DATABASE_URL) copyPreparedDatabase(dataDir)
  const removeOwnDir = () => {
    if (ownDir) rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
  /** A killed service leaves its database running. Its test may look at what is left, until the end of the process. */
  const endRest = () => {
    killAll(findProcesses(dataDir))
    removeOwnDir()
  }
  // No updates of signatures: tests give the same results with and without the internet.
  const settings = {
    ASSAY_PORT: '0',
    ASSAY_SIGNATURE_HOURS: '0',
    ASSAY_SIGNATURE_MAX_AGE: 'off',
    ASSAY_DATA_DIR: dataDir,
    ...env,
  }
  const [command = '', ...args] = [...under, process.execPath, findProgramFile('serve'), 'serve', '--json', ...options]
  const { child, ended } = spawnWithParent(command, args, {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', logs === 'kept' ? 'pipe' : 'ignore'],
  })
  let out = ''
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    log += text
  })
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  const isReady = () => out.includes('"url"') && out.includes('\n')
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const end = async (signal: NodeJS.Signals) => {
    if (hasEnded()) return
    child.ref()
    child.kill(signal)
    await ended
  }
  try {
    await waitUntil('the service to be ready', () => isReady() || hasEnded(), startTimeoutMs)
    if (!isReady()) throw new Error(`The service ended with ${child.exitCode ?? child.signalCode} before it was ready.`)
  } catch (error) {
    await end('SIGTERM')
    removeOwnDir()
    throw new Error(`${(error as Error).message}\n${out}${log}`, { cause: error })
  }
  const ready = JSON.parse(out) as Ready

  return {
    url: ready.url,
    metricsPort: ready.metrics_port,
    dataDir,
    pid: child.pid ?? 0,
    apiKey: ready.api_key,
    webhookSecret: ready.webhook_secret,
    consoleLink: ready.console_link,
    operate: makeOperate(settings),
    log: () => log,
    async stop(signal = 'SIGTERM') {
      await end(signal)
      if (signal !== 'SIGKILL') removeOwnDir()
      else if (ownDir) process.once('exit', endRest)
    },
    handle: JSON.stringify({
      url: ready.url,
      metricsPort: ready.metrics_port,
      settings,
    }),
  }
}

/** Starts a child that does not outlive this process, however its tests end, and does not keep it alive. */
function spawnWithParent(command: string, args: string[], options: SpawnOptions) {
  const child = spawn(command, args, options)
  const end = () => void child.kill('SIGTERM')
  process.once('exit', end)
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      process.off('exit', end)
      resolve()
    })
  })
  child.unref()
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
  return { child, ended }
}

type Ready = { url: string; metrics_port: number; api_key: string; webhook_secret: string; console_link: string }

/** Makes a function that runs the operator's program with --json on the installation of these settings. */
export function makeOperate(settings: NodeJS.ProcessEnv) {
  return async (...args: string[]): Promise<unknown> => {
    const { code, out, err } = await runProgram(settings, ...args, '--json')
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${err}`)
    return JSON.parse(out)
  }
}
