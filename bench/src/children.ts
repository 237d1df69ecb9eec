import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ownRoot = fileURLToPath(new URL('../../', import.meta.url))
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const startTimeoutMs = 60_000
const apiKey = 'assay-bench-key-0123456789abcdef'

export type Server = { url: string; pid: number }
export type Service = Server & { dataDir: string; headers: string[] }
type StartOptions = {
  /** Separates the directories of several services. */
  name?: string
  /** Directory of the repository whose service is started. */
  root?: string
}

export type Children = ReturnType<typeof openChildren>

/** Starts the measured and the measuring processes, with a directory for them. The caller closes it. */
export function openChildren() {
  const dir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const logFile = join(dir, 'service.log')
  const children: ChildProcess[] = []
  const close = async () => {
    for (const signal of signals) process.off(signal, stop)
    for (const child of children.toReversed()) await end(child)
    printErrors(logFile)
    rmSync(dir, { recursive: true, force: true })
  }
  const stop = () => void close().finally(() => process.exit(1))
  for (const signal of signals) process.once(signal, stop)

  return {
    dir,
    close,
    /** Starts the service as `npm start` does, with its log in a file. */
    async startService(
      path: string,
      settings: Record<string, string> = {},
      { name = 'data', root = ownRoot }: StartOptions = {},
    ): Promise<Service> {
      const log = openSync(logFile, 'a')
      const dataDir = join(dir, name)
      const env = {
        ...process.env,
        ASSAY_PORT: '0',
        ASSAY_DATA_DIR: dataDir,
        ASSAY_BOOTSTRAP_KEY: apiKey,
        ASSAY_SIGNATURE_HOURS: '0',
        ASSAY_SIGNATURE_MAX_AGE: 'off',
        // For options such as --cpu-prof.
        NODE_OPTIONS: process.env.ASSAY_BENCH_NODE ?? '',
        ...settings,
      }
      const child = spawn(join(root, 'packaging/assay'), ['serve', '--json'], { env, stdio: ['ignore', 'pipe', log] })
      closeSync(log)
      children.push(child)
      const url = await readUrl(child).catch((error) => {
        throw new Error(`The service does not start:\n${readFileSync(logFile, 'utf8')}`, { cause: error })
      })
      return { url: url + path, pid: child.pid ?? 0, dataDir, headers: [`X-API-Key: ${apiKey}`] }
    },
    /** Starts a program of this folder that writes `{"url": ...}` when it is ready. */
    async startServer(file: URL, args: string[], log: 'inherit' | 'ignore' = 'inherit'): Promise<Server> {
      const child = spawn(process.execPath, [fileURLToPath(file), ...args], { stdio: ['ignore', 'pipe', log] })
      children.push(child)
      return { url: await readUrl(child), pid: child.pid ?? 0 }
    },
    /** Starts a program of this folder that answers each job with a result or an `error`. */
    startWorker<Job extends object, Result extends object>(file: URL, args: string[] = []) {
      const child = fork(file, args, { execArgv: [] })
      children.push(child)
      const ended = once(child, 'exit').then(() => [{ error: `${fileURLToPath(file)} ended` }] as const)
      return {
        pid: child.pid ?? 0,
        async run<T extends Result>(job: Job): Promise<T> {
          const answered = once(child, 'message') as Promise<[T | { error: string }]>
          child.send(job)
          const [answer] = await Promise.race([answered, ended])
          if ('error' in answer) throw new Error(answer.error)
          return answer
        },
        stop: () => child.send({ stop: true }),
      }
    },
  }
}

/** Prints the errors that the service logged, because figures of a failing service mean little. */
function printErrors(logFile: string) {
  if (!existsSync(logFile)) return
  const errors = readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"level":"error"'))
  for (const line of errors.slice(0, 5)) process.stderr.write(`  the service: ${line.slice(0, 2000)}\n`)
}

async function readUrl(child: ChildProcess): Promise<string> {
  let text = ''
  const read = (part: string) => {
    text += part
  }
  child.stdout?.setEncoding('utf8').on('data', read)
  const ended = once(child, 'exit').then(() => 'ended')
  for (const deadline = Date.now() + startTimeoutMs; Date.now() < deadline; ) {
    if ((await Promise.race([ended, sleep(20)])) === 'ended') throw new Error('The program ended before it was ready')
    // Libraries may print other lines before this one.
    const line = /^\{.*"url".*\}$/m.exec(text)?.[0]
    if (line === undefined || !text.endsWith('\n')) continue
    // Later lines, such as a log of requests, are dropped.
    child.stdout?.off('data', read).resume()
    return (JSON.parse(line) as { url: string }).url
  }
  throw new Error('The program was not ready in time')
}

async function end(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  const forceTimer = setTimeout(() => child.kill('SIGKILL'), 40_000)
  await ended
  clearTimeout(forceTimer)
}

/** Reads the processor time of each process so far, in seconds by name. */
export type Cpu = () => Record<string, number>

/** Waits until no process uses the processor, so that remaining work is not attributed to the next measurement. */
export async function whenIdle(cpu: Cpu) {
  let quiet = 0
  let before = sum(Object.values(cpu()))
  for (let i = 0; i < 100 && quiet < 2; i++) {
    await sleep(150)
    const now = sum(Object.values(cpu()))
    quiet = now - before <= 0.02 ? quiet + 1 : 0
    before = now
  }
}

/** Runs `work` and returns the share of the machine that each process used, as text, and the total processor time. */
export async function watchCores<T>(cpu: Cpu, work: () => Promise<T>) {
  const before = cpu()
  const start = performance.now()
  const result = await work()
  const seconds = (performance.now() - start) / 1000
  const used = Object.entries(cpu()).map(([name, at]) => [name, at - (before[name] ?? 0)] as const)
  const cores = used.filter(([, s]) => s / seconds > 0.005).map(([name, s]) => `${name} ${(s / seconds).toFixed(2)}`)
  return {
    result,
    used: `in ${seconds.toFixed(1)} s; cores: ${cores.join(', ')}`,
    // A process that has ended lowers the sum.
    cpuSeconds: sum(used.map(([, s]) => Math.max(0, s))),
  }
}

export const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)

/** Median; of an even number of values the mean of the two in the middle. */
export function toMedian(numbers: number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  return ((sorted[Math.ceil(half) - 1] ?? 0) + (sorted[Math.floor(half)] ?? 0)) / 2
}
