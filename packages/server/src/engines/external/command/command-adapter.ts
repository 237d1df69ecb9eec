import { realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Content } from '../../../domain/content/content.ts'
import { EngineDown } from '../../../domain/ports/engines.ts'
import { removeTree } from '../../../runtime/remove-tree.ts'
import { chooseUnprivileged } from '../../../runtime/unprivileged.ts'
import { parserUsers } from '../../child-process/node-launch.ts'
import { isEscape } from '../../jail/escape.ts'
import { launcherDirs, toJailed } from '../../jail/jail.ts'
import { policies } from '../../jail/policy.ts'
import { chooseSandbox } from '../../jail/sandbox.ts'
import { type AdapterDeps, ContentRefused, type ExternalAdapter } from '../adapter.ts'
import { listMatchedNames, unnamedThreat } from '../matched-name.ts'
import { newProbeContent } from '../probe-content.ts'
import { openOwnDir } from './own-dir.ts'
import { type CommandResult, runCommand } from './run-command.ts'

/** Stands for the path of the file in the arguments. */
export const filePlaceholder = '{file}'

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

/** More than the buffer between two processes takes, so that a program must read to get all of it. */
const inputProbeBytes = 1024 * 1024

type Deps = Pick<AdapterDeps, 'name' | 'dataDir' | 'acceptsDisk' | 'onEscape'>

/**
 * A program of the operator, started in a jail for each scan. The file is its standard input, or lies in a file system
 * in memory that only this process sees and that ends with it.
 */
export function openCommandAdapter(settings: CommandSettings, { onEscape, ...deps }: Deps): ExternalAdapter {
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
