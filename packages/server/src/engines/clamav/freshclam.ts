import { spawn } from 'node:child_process'
import { chownSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hideCredentials } from '../../runtime/hide-credentials.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type Unprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { isEscape, type OnEscape } from '../jail/escape.ts'
import { toJailed } from '../jail/jail.ts'
import { policies } from '../jail/policy.ts'

const runTimeoutMs = 30 * 60_000
/** Keeps the first update from slowing down the start of the service. */
const firstDelayMs = 5000

/** `message` holds the last errors and warnings of freshclam. */
export type UpdateResult = { at: Date; ok: boolean; message: string }

type LaunchDeps = {
  binary: string
  officialDir: string
  user: Unprivileged
  mirror: string
  /** Addresses of further signature files. */
  urls: string[]
}

type UpdaterDeps = LaunchDeps & {
  everyHours: number
  /** Builds the command to spawn; by default freshclam in its jail. */
  toLaunch?: typeof toFreshclamLaunch
  /** Called after each run. A run that failed in part may have changed files too. */
  onRun(result: UpdateResult): void
  log: Logger
  onEscape?: OnEscape | undefined
}

/** Downloads new signatures from ClamAV's mirrors, or those that are set, at regular times. */
export function openUpdater(deps: UpdaterDeps) {
  const { officialDir, user, log, toLaunch = toFreshclamLaunch } = deps
  // The user of freshclam owns its directory, and could put a link in the place of a file that root writes there.
  const configFile = join(dirname(officialDir), 'freshclam.conf')
  let isClosed = false
  let last: UpdateResult | undefined
  let child: ReturnType<typeof spawn> | undefined
  let waiting: ((result: UpdateResult) => void)[] = []
  const first = setTimeout(run, firstDelayMs)
  const every = setInterval(run, deps.everyHours * 3_600_000)

  return {
    findLast: () => last,
    /** Starts a run, or joins the one under way, and returns its result. */
    runNow(): Promise<UpdateResult> {
      const result = new Promise<UpdateResult>((resolve) => waiting.push(resolve))
      run()
      return result
    },
    close() {
      isClosed = true
      clearTimeout(first)
      clearInterval(every)
      child?.kill('SIGTERM')
    },
  }

  function run() {
    if (child !== undefined) return
    try {
      prepare()
      start([], (ok, message) => {
        // After a failure of the mirror, freshclam does not download from the operator's addresses.
        if (ok || deps.urls.length === 0) end(ok, message)
        else start(['--update-db=custom'], () => end(false, message))
      })
    } catch (error) {
      end(false, (error as Error).message)
    }
  }

  function prepare() {
    mkdirSync(officialDir, { recursive: true })
    if (user.owner !== undefined) chownSync(officialDir, user.owner.uid, user.owner.gid)
    writeFileSync(configFile, toConfig(deps), { mode: 0o644 })
  }

  function start(extraArgs: string[], onEnd: (ok: boolean, message: string) => void) {
    const { command, args } = toLaunch(deps, [`--config-file=${configFile}`, '--stdout', '--no-warnings', ...extraArgs])
    let message = ''
    child = spawn(command, args, {
      cwd: '/',
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: runTimeoutMs,
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        message = (message + text.toString()).slice(-4000)
      })
    }
    let isOver = false
    const once = (ok: boolean, message: string) => {
      if (!isOver && !isClosed) onEnd(ok, message)
      isOver = true
    }
    child.once('error', (error) => once(false, error.message))
    child.once('close', (code, signal) => {
      if (isEscape(signal)) deps.onEscape?.('freshclam')
      once(code === 0, isEscape(signal) ? 'freshclam made a call that it has no use for' : toLastErrors(message))
    })
  }

  function end(ok: boolean, said: string) {
    child = undefined
    // freshclam names the URLs that it cannot download, and the console shows the message.
    const message = hideCredentials(said)
    last = { at: new Date(), ok, message }
    if (ok) log.info('signatures are up to date')
    else log.warn({ message }, 'signatures could not be updated; the current ones stay in use')
    deps.onRun(last)
    for (const resolve of waiting) resolve(last)
    waiting = []
  }
}

/** The command that runs freshclam in its jail. */
export function toFreshclamLaunch({ binary, officialDir, user, mirror, urls }: LaunchDeps, args: string[]) {
  const policy = policies.freshclam({
    binary: realpathSync(binary),
    reads: [join(dirname(officialDir), 'freshclam.conf')],
    writes: [officialDir],
    ports: [53, 80, 443, ...[mirror, ...urls].flatMap(findPort)],
  })
  const jailed = toJailed(policy, args, { hasSocket: false, keepsCapability: user.hasCapability === true })
  return wrapGuarded(user, jailed.command, jailed.args)
}

/** The port that an address names, if it is not the usual one of its protocol. */
function findPort(address: string): number[] {
  const port = URL.parse(address.includes('://') ? address : `http://${address}`)?.port
  return port ? [Number(port)] : []
}

export type Updater = ReturnType<typeof openUpdater>

function toConfig({ officialDir, mirror, urls }: UpdaterDeps): string {
  const settings = [
    ['DatabaseDirectory', officialDir],
    ['DatabaseMirror', mirror],
    ...urls.map((url) => ['DatabaseCustomURL', url]),
    ['MaxAttempts', 2],
    ['ConnectTimeout', 20],
    ['ReceiveTimeout', 120],
    ['TestDatabases', 'yes'],
    ['CompressLocalDatabase', 'no'],
    ['LogTime', 'no'],
  ]
  return `${settings.map(([name, value]) => `${name} ${value}`).join('\n')}\n`
}

/** In its jail freshclam cannot start a process to test a database in; it warns, and tests without. */
const toLastErrors = (message: string) =>
  message
    .split('\n')
    .filter((line) => /error|warning|can't|failed/i.test(line) && !line.includes('fork() to test'))
    .slice(-2)
    .join(' ')
