import { accessSync, constants, existsSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'
import { removeOutsideDir, removeTree, takeFileLock } from '../../runtime/files.ts'
import { chooseUnprivileged } from '../../runtime/process.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'
import { parserUsers } from '../child-process/node-launch.ts'
import { launcherDirs, toJailed } from '../jail/jail.ts'
import { isEscape, policies } from '../jail/policy.ts'
import { chooseSandbox, scratchName } from '../jail/sandbox.ts'
import {
  type AdapterDeps,
  ContentRefused,
  type ExternalAdapter,
  type ExternalKind,
  listMatchedNames,
  newProbeContent,
  unnamedThreat,
} from './adapter.ts'
import { type CommandResult, runCommand } from './run-command.ts'

/** Stands for the path of the file in the arguments. */
const filePlaceholder = '{file}'
const absolutePath = /^\//
/** The code with which the loader ends a program that lacks a library, and shells one that they do not find. */
const loaderCodes = [126, 127]

/** A program that scans one file and tells by its exit code what it found. */
export const commandKind: ExternalKind = {
  read(options) {
    const settings = readSettings(options)
    return (deps) => openCommandAdapter(settings, deps)
  },
}

export type CommandSettings = {
  program: string
  args: string[]
  /** Files, and directories with everything below, that the program may read. */
  reads: string[]
  cleanCodes: number[]
  threatCodes: number[]
  threatPattern: RegExp | undefined
  memoryMb: number
  /** Size of the file system in memory for the file and what the program unpacks of it. */
  scratchMb: number
  processorSeconds: number
}

function readSettings(options: OptionReader): CommandSettings {
  const program = options.requireText('program', '"/usr/bin/clamscan"', absolutePath, 'must be the path of a program')
  if (isAbsolute(program) && !isExecutable(program)) options.note('program', 'is not a program that can be executed')
  const args = options.texts('args', /^[^\0]*$/, 'must be a list of texts') ?? []
  if (args.filter((arg) => arg.includes(filePlaceholder)).length > 1) {
    options.note('args', `must name ${filePlaceholder} once, or not at all for a program that reads its standard input`)
  }
  const reads = options.texts('reads', absolutePath, 'must be a list of paths that the program may read') ?? []
  for (const path of reads) if (!existsSync(path)) options.note('reads', `names ${path}, which does not exist`)
  return {
    program,
    args,
    reads,
    ...readCodes(options),
    threatPattern: options.pattern('threat_pattern', undefined),
    memoryMb: options.wholeNumber('memory_mb', { min: 16, max: 1_000_000, fallback: 2048 }),
    scratchMb: options.wholeNumber('scratch_mb', { min: 1, max: 1_000_000, fallback: 1024 }),
    processorSeconds: options.wholeNumber('cpu_seconds', { min: 1, max: 3600, fallback: 60 }),
  }
}

function readCodes(options: OptionReader) {
  const cleanCodes = options.wholeNumbers('clean_exit_codes', { min: 0, max: 255, fallback: [0] })
  const threatCodes = options.wholeNumbers('threat_exit_codes', { min: 0, max: 255, fallback: [1] })
  if (cleanCodes.some((code) => threatCodes.includes(code))) {
    options.note('threat_exit_codes', 'and clean_exit_codes must not have a code in common')
  }
  if (cleanCodes.some((code) => loaderCodes.includes(code))) {
    options.note('clean_exit_codes', `must not have ${loaderCodes.join(' or ')}: a program that cannot start ends so`)
  }
  return { cleanCodes, threatCodes }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

type Deps = Pick<AdapterDeps, 'name' | 'dataDir' | 'acceptsDisk' | 'onEscape'>

/** More than the buffer between two processes takes, so that a program must read to get all of it. */
const inputProbeBytes = 1024 * 1024

/**
 * A program of the operator, started in a jail for each scan. The file is its standard input, or lies in a file system
 * in memory that only this process sees and that ends with it.
 */
function openCommandAdapter(settings: CommandSettings, { onEscape, ...deps }: Deps): ExternalAdapter {
  const ownDir = openOwnDir(join(deps.dataDir, 'engines'))
  const toLaunch = prepareCommand(settings, { ...deps, dir: ownDir.path })
  const takesPath = settings.args.some((arg) => arg.includes(filePlaceholder))
  let readsInput = takesPath

  async function run(content: Content, signal: AbortSignal): Promise<CommandResult> {
    const { command, args, env, runDir, removesItself } = toLaunch(takesPath ? content.bytes : undefined)
    try {
      const result = await runCommand({ command, args, env }, content, signal)
      if (isEscape(result.signal)) onEscape?.('command')
      return result
    } finally {
      if (!removesItself) removeTree(runDir)
    }
  }

  /** Small content fits into a buffer and counts as taken, so a clean answer needs a program that has read more once. */
  async function proveReading(signal: AbortSignal) {
    if (readsInput) return
    const { hasTakenAll } = await run(newProbeContent(inputProbeBytes), signal)
    if (!hasTakenAll) throw new EngineDown('the program does not read its standard input')
    readsInput = true
  }

  return {
    async scan(content, { signal }) {
      if (takesPath && content.bytes > settings.scratchMb * 2 ** 20) {
        throw new ContentRefused('the content is larger than scratch_mb: raise that, or set max_bytes')
      }
      const findings = toFindings(await run(content, signal), settings)
      if (findings.length === 0) await proveReading(signal)
      return { findings, version: undefined }
    },
    async close() {
      ownDir.remove()
    },
  }
}

/**
 * Prepares the directory for the file. Its arguments are the directory and the size of the file, which is empty for a
 * program that reads its standard input. A file that has another size was cut, and must not be scanned.
 */
const script = `
set -e
umask 077
mkdir "$1" "$1/tmp"
if test -n "$2"; then
  cat > "$1/file"
  test "$(stat -c %s "$1/file")" = "$2"
  exec < /dev/null
fi
shift 2
exec "$@"
`

/** Chooses where the program runs. The returned function gives the launch for one file, or for the standard input. */
export function prepareCommand(
  settings: CommandSettings,
  { dir, ...deps }: Pick<Deps, 'name' | 'acceptsDisk'> & { dir: string },
) {
  const program = realpathSync(settings.program)
  const ownDirs = [dirname(program), dir, ...settings.reads.map(toDirectory)]
  const user = chooseUnprivileged('engine', parserUsers, [...ownDirs, ...launcherDirs])
  // The launcher drops a capability that only its own files need before it becomes the program.
  if (user.hasCapability) user.hasCapability = chooseUnprivileged('engine', parserUsers, ownDirs).hasCapability === true
  const sandbox = chooseSandbox({
    name: `The engine ${deps.name}`,
    user,
    dir,
    scratchMegabytes: settings.scratchMb,
    acceptsDisk: deps.acceptsDisk,
  })
  sandbox.wipe()
  let runs = 0

  return (fileBytes: number | undefined) => {
    const runDir = join(sandbox.scratchDir, `run-${++runs}`)
    const temporary = join(runDir, 'tmp')
    const policy = policies.command({
      ...settings,
      program,
      reads: [...settings.reads, join(runDir, 'file')],
      writes: [temporary],
    })
    const args = settings.args.map((arg) => arg.replaceAll(filePlaceholder, join(runDir, 'file')))
    const jailed = toJailed(policy, args, {
      hasSocket: false,
      keepsCapability: sandbox.keepsCapability,
      announcesStart: true,
    })
    const words = ['-c', script, 'sh', runDir, String(fileBytes ?? ''), jailed.command, ...jailed.args]
    return {
      // The program has a lower priority than the service, which could not answer other callers during a scan otherwise.
      ...sandbox.wrap('nice', ['-n', '10', '/bin/sh', ...words]),
      env: { TMPDIR: temporary, HOME: temporary, LC_ALL: 'C.UTF-8' },
      runDir,
      removesItself: sandbox.kind === 'private',
    }
  }
}

const toDirectory = (path: string) => (statSync(path).isDirectory() ? path : dirname(path))

/** The names of what the program found. Throws for every end but those that the operator calls an answer. */
function toFindings(result: CommandResult, { cleanCodes, threatCodes, threatPattern }: CommandSettings): string[] {
  const { code, signal, hasStarted, hasTakenAll, stdout, stderr } = result
  const said = stderr.trim().split('\n').at(-1) || stdout.trim().split('\n').at(-1)
  const reason = said ? `: ${said}` : ''
  if (!hasStarted) throw new EngineDown(`the program could not be started${reason}`)
  if (code === null) throw new EngineDown(`the program was ended by ${signal}${reason}`)
  const isThreat = threatCodes.includes(code)
  if (!isThreat && !cleanCodes.includes(code)) throw new EngineDown(`the program ended with the code ${code}${reason}`)
  const { names, isReadable } =
    threatPattern === undefined ? { names: [], isReadable: true } : listMatchedNames(stdout, threatPattern)
  if (names.length > 0) return names
  if (isThreat) return [unnamedThreat]
  if (!isReadable) throw new EngineDown('the program printed too many lines, or one that is too long')
  if (!hasTakenAll) throw new EngineDown('the program ended before it had read the content')
  return []
}

const lockName = /^(\d+)\.lock$/

/**
 * Opens a directory below `parent` that no other engine and no other process uses: the service and the command
 * `assay scan` may run at the same time. The kernel releases the lock of a process that ends in any way, and the next
 * call removes the files that such a process has left.
 */
export function openOwnDir(parent: string): { path: string; remove(): void } {
  // Every user may enter, because the programs run as one that owns nothing.
  mkdirSync(parent, { recursive: true, mode: 0o711 })
  removeAbandoned(parent)
  for (let number = 0; ; number++) {
    const lock = takeFileLock(join(parent, `${number}.lock`))
    if ('heldBy' in lock) continue
    const path = join(parent, String(number))
    removeDir(path)
    mkdirSync(path, { mode: 0o711 })
    return {
      path,
      remove() {
        removeDir(path)
        lock.release()
      },
    }
  }
}

function removeAbandoned(parent: string) {
  for (const name of readdirSync(parent)) {
    const number = lockName.exec(name)?.[1]
    if (number === undefined) continue
    const lock = takeFileLock(join(parent, name))
    if ('heldBy' in lock) continue
    removeDir(join(parent, number))
    lock.release()
  }
}

/** Removes the directory and its scratch directory elsewhere. */
function removeDir(path: string) {
  removeOutsideDir(join(path, scratchName))
  removeTree(path)
}
