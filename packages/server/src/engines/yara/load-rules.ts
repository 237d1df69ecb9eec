import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EngineDown, type EngineState } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { engineOptions } from '../child-process/engine-options.ts'
import { findModulesDir, type Launch, toNodeLaunch } from '../child-process/node-launch.ts'
import { openProcessPool, type ProcessPool } from '../child-process/process-pool.ts'
import { type Child, startChild } from '../child-process/start-child.ts'
import { type OnEscape, policies } from '../jail/policy.ts'
import type { Answer, BackendName, Compiled, Refused, Request } from './requests.ts'
import { type ListedFile, type RuleFile, readRuleFiles } from './rule-files.ts'

type CompileOptions = {
  backend: BackendName | undefined
  compileMs: number
  signal: AbortSignal
  stallMs?: number
  onEscape?: OnEscape | undefined
}

type Pooling = Pick<typeof engineOptions.yara, 'processes' | 'maxWaiting' | 'waitMs' | 'reserved' | 'reservedForMs'>

export type LoadOptions = CompileOptions & Pooling & { log: Logger }

export type LoadedRules = {
  refused: Refused[]
  /** The files in use, with their text. */
  files: RuleFile[]
  /** Undefined when the files hold no rule. */
  pool: ProcessPool | undefined
  state: EngineState | undefined
}

type Started = { child: Child; compiled: Compiled }

/** Increase this when a change of Assay makes the same rules give other findings. */
const revision = 'assay-yara-1'

const checkMs = 60_000
const noBytes = Buffer.alloc(0)
const program = fileURLToPath(new URL('child/main.ts', import.meta.url))
const sourceDir = import.meta.dirname

/**
 * Reads and compiles the rule files, and opens a pool of processes that hold them. A file that is refused is replaced by
 * its version of `previous`, which compiled before.
 */
export async function loadRules(
  options: LoadOptions,
  listed: ListedFile[],
  previous: RuleFile[] = [],
): Promise<LoadedRules> {
  const { files, refused: unreadable } = await readRuleFiles(listed)
  const { refused, used, first } = await compileRules(files, unreadable, previous, options)
  if (first === undefined) return { refused, files: [], pool: undefined, state: undefined }
  const started = [first]
  const pool = openProcessPool({
    ...engineOptions.yara,
    ...options,
    minProcesses: options.processes,
    maxProcesses: options.processes,
    start: async () => (started.pop() ?? (await startWithRules(used, options))).child,
  })
  try {
    await pool.opened
  } catch (error) {
    await pool.close()
    throw error
  }
  return { refused, files: used, pool, state: toState(first.compiled, used) }
}

/** Compiles the files in a first process, which is undefined when no rule is left. */
async function compileRules(
  files: RuleFile[],
  unreadable: Refused[],
  previous: RuleFile[],
  options: LoadOptions,
): Promise<{ refused: Refused[]; used: RuleFile[]; first?: Started }> {
  const first = files.length === 0 ? undefined : await startWithRules(files, options)
  const refused = [...unreadable, ...(first?.compiled.refused ?? [])]
  const refusedNames = new Set(refused.map(({ file }) => file))
  const used = files.filter(({ file }) => !refusedNames.has(file))
  const earlier = previous.filter(({ file }) => refusedNames.has(file))
  if (first !== undefined && first.compiled.rules > 0 && earlier.length === 0) return { refused, used, first }
  first?.child.kill()
  await first?.child.ended
  if (earlier.length === 0) return { refused, used: [] }
  const again = await compileRules([...used, ...earlier], [], [], options)
  return { ...again, refused }
}

/** The reason why the engine would refuse this rule file, or undefined. Throws `EngineDown` when YARA cannot run. */
export async function checkYaraFile(
  path: string,
  options: { backend?: BackendName; signal?: AbortSignal } = {},
): Promise<string | undefined> {
  const { files, refused } = await readRuleFiles([{ path: resolve(path), mark: '', changedAt: new Date(0) }])
  if (refused[0] !== undefined) return refused[0].reason
  if (files.length === 0) return `${basename(path)} does not exist`
  const { backend, signal = new AbortController().signal } = options
  const { child, compiled } = await startWithRules(files, { backend, compileMs: checkMs, signal })
  child.end()
  await child.ended
  if (compiled.refused[0] !== undefined) return compiled.refused[0].reason
  return compiled.rules === 0 ? 'there is no rule in it' : undefined
}

/** Starts a process and compiles the files in it. Throws `EngineDown` when that fails; refused files are no failure. */
async function startWithRules(files: RuleFile[], options: CompileOptions): Promise<Started> {
  const { compileMs, signal } = options
  const child = startYaraProcess(options)
  const send = async (request: Request, body: Buffer) => {
    const { sendMs } = engineOptions.yara
    const answer = await child.sendRequest<Answer>(request, body, { sendMs, answerMs: compileMs, signal })
    if ('failure' in answer) throw new Error(answer.failure)
    return answer
  }
  signal.addEventListener('abort', child.kill, { once: true })
  try {
    for (const { file, text } of files) await send({ kind: 'add', file, bytes: text.length }, text)
    const compiled = await send({ kind: 'compile' }, noBytes)
    if (!('refused' in compiled)) throw new Error('The YARA process did not say what it compiled')
    return { child, compiled }
  } catch (error) {
    child.kill()
    await child.ended
    throw new EngineDown('YARA could not compile its rules', { cause: error })
  } finally {
    signal.removeEventListener('abort', child.kill)
  }
}

/**
 * Rules are the operator's code and content is hostile. Both meet in a process that holds no secret, can write nothing,
 * and can be killed at any time.
 */
function startYaraProcess({ backend, stallMs, onEscape }: CompileOptions): Child {
  const launch = launches.get(backend) ?? toYaraLaunch(program, backend)
  launches.set(backend, launch)
  return startChild(engineOptions.yara.name, launch, {
    onEscape: () => onEscape?.('yara'),
    ...(stallMs === undefined ? {} : { stallMs }),
  })
}

const launches = new Map<BackendName | undefined, Launch>()

/** The command that runs a program as a YARA process. */
export const toYaraLaunch = (program: string, backend: BackendName | undefined) =>
  toNodeLaunch({
    name: 'YARA engine',
    program,
    args: backend === undefined ? [] : [backend],
    toPolicy: policies.yara,
    readableDirs: [
      sourceDir,
      ...['koffi', '@virustotal/yara-x'].map((name) => findModulesDir(import.meta.resolve(name))),
    ],
    // The package list states the version of libyara.
    readableFiles: ['/var/lib/dpkg/status'],
    // Content lies outside of the heap; the result of a scan with YARA-X lies within.
    maxHeapMb: 512,
    allowsAddons: true,
  })

function toState(compiled: Compiled, used: RuleFile[]): EngineState {
  const digest = createHash('sha256').update(JSON.stringify([revision, compiled.version, compiled.build]))
  for (const { file, text } of used) digest.update(JSON.stringify([file, text.length])).update(text)
  const changes = used.map(({ changedAt }) => changedAt.getTime())
  return {
    version: compiled.version,
    verdictVersion: digest.digest('hex'),
    signatures: compiled.rules,
    signaturesAt: changes.length === 0 ? undefined : new Date(Math.max(...changes)),
  }
}
