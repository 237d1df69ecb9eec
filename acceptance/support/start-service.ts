import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programFile, runProgram } from './run-program.ts'

export type Service = {
  url: string
  metricsPort: number
  dataDir: string
  /** The process, for tests that send it signals. */
  pid: number
  /** First account's own, when this start created it. */
  apiKey: string
  webhookSecret: string
  /** Runs a command of the operator's program with --json; throws with what it printed when it fails. */
  operate(...args: string[]): Promise<unknown>
  /** What it has logged so far. */
  log(): string
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Text from which another process makes the same thing; see shared-service.ts. */
  handle: string
}

/**
 * Starts the service as a user does, on free ports and, unless one is given, a new data directory. A benchmark drops the
 * logs, as a redirection to a file would: reading them costs more than writing them. `options` are for `serve`; `under`
 * is a program to run it under, with its arguments, and must become the service.
 */
export async function startService(
  env: NodeJS.ProcessEnv,
  logs: 'kept' | 'dropped' = 'kept',
  { options = [], under = [] }: { options?: string[] | undefined; under?: string[] | undefined } = {},
): Promise<Service> {
  const ownDir = env.ASSAY_DATA_DIR === undefined
  const dataDir = env.ASSAY_DATA_DIR ?? mkdtempSync(join(tmpdir(), 'assay-acceptance-'))
  const removeOwnDir = () => {
    if (ownDir) rmSync(dataDir, { recursive: true, force: true })
  }
  // No updates: tests are the same with and without the internet, and mirrors have better things to do.
  const settings = { ASSAY_PORT: '0', ASSAY_SIGNATURE_HOURS: '0', ASSAY_DATA_DIR: dataDir, ...env }
  const [command = '', ...args] = [...under, process.execPath, programFile, 'serve', '--json', ...options]
  const child = spawn(command, args, {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', logs === 'kept' ? 'pipe' : 'ignore'],
  })
  let out = ''
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    log += text
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await new Promise<void>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      out += text
      if (out.includes('"url"') && out.includes('\n')) resolve()
    })
    void ended.then((code) => {
      removeOwnDir()
      reject(new Error(`The service ended with ${code} before it was ready:\n${out}${log}`))
    })
  })
  const ready = JSON.parse(out) as { url: string; metrics_port: number; api_key: string; webhook_secret: string }

  return {
    url: ready.url,
    metricsPort: ready.metrics_port,
    dataDir,
    pid: child.pid ?? 0,
    apiKey: ready.api_key,
    webhookSecret: ready.webhook_secret,
    operate: makeOperate(settings),
    log: () => log,
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      await ended
      // A killed one leaves its database running, and a test that kills wants to look at what is left.
      if (signal !== 'SIGKILL') removeOwnDir()
    },
    handle: JSON.stringify({ url: ready.url, metricsPort: ready.metrics_port, settings }),
  }
}

/** The operator's program with --json, pointed at the same installation. */
export function makeOperate(settings: NodeJS.ProcessEnv) {
  return async (...args: string[]): Promise<unknown> => {
    const { code, out, err } = await runProgram(settings, ...args, '--json')
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${err}`)
    return JSON.parse(out)
  }
}
