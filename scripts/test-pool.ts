import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { readStolenMs } from './processor-time.ts'

/**
 * Test files for one process and their environment; `env` resolves when the services that it names are ready. Services
 * that a function opens start when few other runs are left: a service takes processor time also while it waits.
 */
export type TestRun = { files: string[]; label?: string; env: Environment | (() => Environment) }
type Environment = Promise<NodeJS.ProcessEnv>

/** A deadline, not a measurement: the largest archive bomb takes two minutes beside other tests on two cores. */
const testTimeoutMs = 300_000
/** A file that takes longer than this hangs: its tests have deadlines of their own. */
const fileTimeoutMs = 900_000
const root = fileURLToPath(new URL('../', import.meta.url))
/** Programs that each test process loads first, in this order. */
const preloads = ['test-context', 'test-process']

/** Two more files than cores run at a time, because tests spend part of their time waiting. */
const minFiles = Math.min(availableParallelism(), 4) + 2
/** While processors are idle, up to this many files run: each may start a service with its database and engines. */
const maxFiles = 2 * minFiles
/** Services that open late do so when fewer other runs than these wait, which take about as long as the services. */
const lateRuns = 4 * minFiles
/** Part of the processors that must be idle before one more file starts, and how often that is measured. */
const idleShare = 0.2
const idleCheckMs = 1500

/**
 * Runs test files in their order, those first whose services are ready. Prints one line for a file that passed and
 * everything about one that failed. Resolves to whether all passed. `signal` ends the files that run and starts no more.
 */
export async function runPool(
  runs: TestRun[],
  { verbose, signal }: { verbose: boolean; signal: AbortSignal },
): Promise<boolean> {
  const queue = runs.map((testRun) => ({ ...testRun, isReady: false, opened: undefined as Environment | undefined }))
  const startedAt = performance.now()
  const totals = { files: 0, passed: 0, failed: 0, skipped: new Map<string, number>(), failedFiles: [] as string[] }
  const costs: { name: string; processorMs: number }[] = []

  function open(waiting: (typeof queue)[number]): Environment {
    if (waiting.opened !== undefined) return waiting.opened
    const opened = typeof waiting.env === 'function' ? waiting.env() : waiting.env
    waiting.opened = opened
    opened.then(
      () => {
        waiting.isReady = true
      },
      () => {},
    )
    return opened
  }

  function openDue() {
    const early = queue.filter(({ env }) => typeof env !== 'function')
    for (const waiting of early.length < lateRuns ? queue : early) void open(waiting)
  }

  async function runNext() {
    const ready = queue.findIndex(({ isReady }) => isReady)
    const [next] = queue.splice(Math.max(ready, 0), 1)
    if (next === undefined) return
    openDue()
    const result = await runFiles(next.files, await open(next), signal)
    const name = toName(next)
    totals.files += next.files.length
    totals.passed += result.passed
    totals.failed += result.failed
    for (const reason of result.skipped) totals.skipped.set(reason, (totals.skipped.get(reason) ?? 0) + 1)
    totals.failedFiles.push(...result.failedFiles.map((file) => toName({ ...next, files: [file] })))
    costs.push({ name, processorMs: result.processorMs })
    const counts = `${result.passed} passed${result.skipped.length > 0 ? `, ${result.skipped.length} skipped` : ''}`
    process.stdout.write(`${result.isOk ? '✔' : '✖'} ${name} (${counts}, ${toSeconds(result.ms)})\n`)
    if (verbose || !result.isOk) process.stdout.write(result.report)
  }

  openDue()
  const processors = watchProcessors()
  await new Promise<void>((resolve, reject) => {
    let running = 0
    const start = () => {
      running++
      runNext().then(() => {
        running--
        fill()
      }, reject)
    }
    const fill = () => {
      if (signal.aborted) queue.length = 0
      while (running < minFiles && queue.length > 0) start()
      if (running === 0) resolve()
    }
    processors.onIdle(() => {
      // A file whose services are not ready would only wait.
      if (running < maxFiles && queue.some(({ isReady }) => isReady)) start()
    })
    fill()
  }).finally(processors.stop)

  const duration = toSeconds(performance.now() - startedAt)
  process.stdout.write(`\n${listCosts(costs)}\n${totals.files} files in ${duration}, ${processors.describe()}\n`)
  for (const [reason, count] of totals.skipped) process.stdout.write(`${count} skipped: ${reason}\n`)
  for (const name of totals.failedFiles) process.stdout.write(`Failed: ${name}\n`)
  process.stdout.write(`${totals.passed} passed, ${totals.failed} failed\n`)
  return totals.failedFiles.length === 0 && !signal.aborted
}

/** `a.test.ts and 7 more (external PostgreSQL)` */
function toName({ files, label }: TestRun): string {
  const others = files.length > 1 ? ` and ${files.length - 1} more` : ''
  return `${files[0]}${others}${label === undefined ? '' : ` (${label})`}`
}

/** Calls `onIdle` when part of the processors was idle since the last check, on a machine that may do other work. */
function watchProcessors() {
  const first = readProcessorTimes()
  let last = first
  let timer: NodeJS.Timeout | undefined
  const toShare = (name: 'idle' | 'stolen', from: Times, to: Times) =>
    (to[name] - from[name]) / Math.max(1, to.all - from.all)
  return {
    onIdle(callback: () => void) {
      timer = setInterval(() => {
        const now = readProcessorTimes()
        if (toShare('idle', last, now) > idleShare) callback()
        last = now
      }, idleCheckMs)
    },
    /** Tells how quiet the machine was since the start: on one that is not, the same files take longer. */
    describe() {
      const now = readProcessorTimes()
      const [idle, stolen] = (['idle', 'stolen'] as const).map((name) => Math.round(100 * toShare(name, first, now)))
      return `processors ${idle} % idle and ${stolen} % used by other machines of the host`
    },
    stop: () => clearInterval(timer),
  }
}

type Times = { idle: number; stolen: number; all: number }

function readProcessorTimes(): Times {
  const times = cpus().map((cpu) => cpu.times)
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const stolen = readStolenMs()
  const all = sum(times.flatMap((each) => Object.values(each))) + stolen
  return { idle: sum(times.map(({ idle }) => idle)), stolen, all }
}

const toSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

/** The suite is bound by the processor, so that these are the files to make cheaper when it takes too long. */
function listCosts(costs: { name: string; processorMs: number }[]): string {
  const sum = costs.reduce((total, { processorMs }) => total + processorMs, 0)
  const lines = costs
    .toSorted((a, b) => b.processorMs - a.processorMs)
    .map(({ name, processorMs }) => `${toSeconds(processorMs).padStart(9)} ${name}\n`)
  return `Processor time of the test files, without the services that they share: ${toSeconds(sum)}\n${lines.join('')}`
}

async function runFiles(files: string[], env: NodeJS.ProcessEnv, signal: AbortSignal) {
  const startedAt = performance.now()
  const usageDir = mkdtempSync(join(tmpdir(), 'assay-test-usage-'))
  const usageFile = join(usageDir, 'ms')
  const stream = run({
    files: files.length === 1 ? files.map((file) => root + file) : [`${root}scripts/test-group.ts`],
    env: { ...env, ASSAY_TEST_PROCESSOR_TIME: usageFile, ASSAY_TEST_FILES: files.join(',') },
    timeout: testTimeoutMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(fileTimeoutMs)]),
    execArgv: preloads.flatMap((name) => ['--import', `${root}scripts/${name}.ts`]),
  })
  const skipped: string[] = []
  const counts = { passed: 0, failed: 0 }
  const passedFiles = new Set<string>()
  let hasFailed = false
  let hasEnded = false
  stream.on('test:pass', ({ name, nesting, skip, details }) => {
    if (nesting === 0) passedFiles.add(name)
    if (typeof skip === 'string') skipped.push(skip)
    else if (details.type !== 'suite') counts.passed++
  })
  stream.on('test:fail', ({ details }) => {
    hasFailed = true
    // A suite fails with each of its tests, which are counted already.
    if ((details.error as { failureType?: string }).failureType !== 'subtestsFailed') counts.failed++
  })
  // The test process sends its summary after its last test, so that one which exits before sends none.
  stream.on('test:summary', ({ file }) => {
    if (file !== undefined) hasEnded = true
  })
  let report = ''
  for await (const text of stream.compose(new spec())) report += text
  if (!hasFailed && !hasEnded) {
    counts.failed++
    report += 'The process exited before its tests were over.\n'
  }
  const isOk = !hasFailed && hasEnded
  // In a group, each file is a suite of that name. A failure outside of the suites concerns all files of the process.
  const unpassed = files.filter((file) => !passedFiles.has(file))
  const failedFiles = isOk ? [] : unpassed.length > 0 ? unpassed : files
  const processorMs = existsSync(usageFile) ? Number(readFileSync(usageFile, 'utf8')) : 0
  rmSync(usageDir, { recursive: true })
  return { ...counts, skipped, report, isOk, failedFiles, ms: performance.now() - startedAt, processorMs }
}
