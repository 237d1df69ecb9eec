import { spawn } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'
import type { Unprivileged } from '../../runtime/unprivileged.ts'

const runTimeoutMs = 30 * 60_000
/** So that a start is not slowed down, and a fleet that starts at once does not ask at once. */
const firstDelayMs = 5000

export type UpdateResult = { at: Date; ok: boolean; said: string }

/** Asks ClamAV's mirrors, or those that are set, for new signatures, every so many hours. */
export function openUpdater(deps: {
  binary: string
  officialDir: string
  user: Unprivileged
  everyHours: number
  mirror: string
  urls: string[]
  /** Called after each run; the files may have changed even when it failed in part. */
  onRun(result: UpdateResult): void
  log: Logger
}) {
  const { officialDir, user, log } = deps
  const configFile = join(officialDir, 'freshclam.conf')
  let isClosed = false
  let last: UpdateResult | undefined
  let child: ReturnType<typeof spawn> | undefined
  let waiting: ((result: UpdateResult) => void)[] = []
  const first = setTimeout(run, firstDelayMs)
  const every = setInterval(run, deps.everyHours * 3_600_000)

  return {
    findLast: () => last,
    /** Asks now, unless that is under way already, and says how it went. */
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
      start([], (ok, said) => {
        // After a failure of the mirror freshclam does not even ask the addresses of the operator's.
        if (ok || deps.urls.length === 0) end(ok, said)
        else start(['--update-db=custom'], () => end(false, said))
      })
    } catch (error) {
      end(false, (error as Error).message)
    }
  }

  function prepare() {
    mkdirSync(officialDir, { recursive: true })
    if (user.owner !== undefined) chownSync(officialDir, user.owner.uid, user.owner.gid)
    writeFileSync(configFile, toConfig(), { mode: 0o644 })
  }

  function start(more: string[], onEnd: (ok: boolean, said: string) => void) {
    const { command, args, ...as } = user.wrap(deps.binary, [
      `--config-file=${configFile}`,
      '--stdout',
      '--no-warnings',
      ...more,
    ])
    let said = ''
    child = spawn(command, args, {
      ...as,
      cwd: '/',
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: runTimeoutMs,
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        said = (said + text.toString()).slice(-4000)
      })
    }
    let isOver = false
    const once = (ok: boolean, words: string) => {
      if (!isOver && !isClosed) onEnd(ok, words)
      isOver = true
    }
    child.once('error', (error) => once(false, error.message))
    child.once('close', (code) => once(code === 0, toLastWords(said)))
  }

  function end(ok: boolean, said: string) {
    child = undefined
    last = { at: new Date(), ok, said }
    if (ok) log.info('signatures are up to date')
    else log.warn({ said }, 'signatures could not be updated; those at hand stay in use')
    deps.onRun(last)
    for (const resolve of waiting) resolve(last)
    waiting = []
  }

  function toConfig(): string {
    const settings = [
      ['DatabaseDirectory', officialDir],
      ['DatabaseMirror', deps.mirror],
      ...deps.urls.map((url) => ['DatabaseCustomURL', url]),
      ['MaxAttempts', 2],
      ['ConnectTimeout', 20],
      ['ReceiveTimeout', 120],
      ['TestDatabases', 'yes'],
      ['CompressLocalDatabase', 'no'],
      ['LogTime', 'no'],
    ]
    return `${settings.map(([name, value]) => `${name} ${value}`).join('\n')}\n`
  }
}

const toLastWords = (said: string) =>
  said
    .split('\n')
    .filter((line) => /error|warning|can't|failed/i.test(line))
    .slice(-2)
    .join(' ')
