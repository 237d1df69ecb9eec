import { realpathSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import koffi from 'koffi'
import { encodeFilter, toFilter } from './filter.ts'
import type { Policy } from './policy.ts'

const launcher = fileURLToPath(new URL('launcher.cjs', import.meta.url))
const node = realpathSync(process.execPath)
const architecture = process.arch === 'x64' ? 'x64' : 'arm64'

/** The native part of koffi. The launcher loads it directly, which saves the 10 ms of koffi's JavaScript. */
const koffiFile = join(
  dirname(realpathSync(fileURLToPath(import.meta.resolve('koffi')))),
  `../@koromix/koffi-linux-${architecture}/linux_${architecture}/koffi.node`,
)

/** Rights of Landlock on files, and the version of its interface that introduced them. */
const right = {
  execute: 1,
  writeFile: 1 << 1,
  readFile: 1 << 2,
  readDirectory: 1 << 3,
  move: 1 << 13,
  truncate: 1 << 14,
  ioctlDevice: 1 << 15,
}
const fileRights = right.execute | right.writeFile | right.readFile | right.truncate | right.ioctlDevice
const read = right.readFile | right.readDirectory
/** Create, write, move and remove files, directories and sockets; no device files and links. */
const write =
  read | right.writeFile | right.truncate | right.move | (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 9)
/** By the version from which on the kernel handles them: files, network, and signals and abstract sockets. */
const handled = [
  [
    [1, (1 << 13) - 1],
    [2, right.move],
    [3, right.truncate],
    [5, right.ioctlDevice],
  ],
  [[4, 0b11]],
  [[6, 0b11]],
]
const resource = { processorSeconds: 0, fileBytes: 1, dataBytes: 2, stackBytes: 3, coreBytes: 4, openFiles: 7 }

/**
 * Threads that a parser may start beside those that its user has; up to about twice as many are possible. The other
 * parsers, which may start later, have up to twenty threads for each processor.
 */
const freeThreads = 1024 + 32 * availableParallelism()

/** The loaders of dynamic programs, which the kernel executes on their behalf. */
const loaders = [
  '/lib/ld-linux-aarch64.so.1',
  '/lib64/ld-linux-x86-64.so.2',
  '/lib/ld-musl-aarch64.so.1',
  '/lib/ld-musl-x86_64.so.1',
]

/** The directories that the launcher itself must be able to read, as whichever user it runs. */
export const launcherDirs = [dirname(node), dirname(launcher), dirname(koffiFile)]

type JailOptions = {
  /** Descriptor 3 is the socket of `startChild`. */
  hasSocket: boolean
  keepsCapability: boolean
  /**
   * The launcher writes a byte to descriptor 3, which the parser does not get, just before it becomes the parser. Without
   * it, an exit code could be that of a launcher that failed.
   */
  announcesStart?: boolean
}

/**
 * The command that runs a parser under its policy, as a child of this process. The parser inherits the standard
 * descriptors, and the socket of `startChild` if it is a child of a pool. Its file system, its system calls and its
 * resources are restricted by the kernel, whichever user it runs as.
 */
export function toJailed(policy: Policy, args: string[], options: JailOptions) {
  const { limits } = policy
  const megabyte = 2 ** 20
  const jail = {
    koffi: koffiFile,
    parent: process.pid,
    command: [policy.program, ...args],
    descriptors: options.hasSocket ? [3] : [],
    keepsCapability: options.keepsCapability,
    announcesStart: options.announcesStart === true,
    // Version 1 of Landlock refuses every move between directories, which freshclam does with its downloads.
    minLandlock: policy.writes.length > 0 ? 2 : 1,
    handled,
    fileRights,
    paths: [
      ...[policy.program, ...loaders].map((path) => [path, right.execute | right.readFile]),
      ...policy.reads.map((path) => [path, read]),
      ...policy.writes.map((path) => [path, write]),
      ['/dev/null', right.readFile | right.writeFile],
    ],
    ports: policy.ports,
    ...findKernelSupport(),
    ...encodeFilter(toFilter(policy, architecture)),
    freeThreads,
    limits: [
      // A core dump would put content on a disk unencrypted.
      [resource.coreBytes, 0],
      [resource.dataBytes, limits.dataMb * megabyte],
      // The limit on data does not count the stack of the first thread. 8 MB is the usual size.
      [resource.stackBytes, 8 * megabyte],
      [resource.fileBytes, limits.fileMb * megabyte],
      [resource.openFiles, limits.openFiles],
      ...(limits.processorSeconds === undefined ? [] : [[resource.processorSeconds, limits.processorSeconds]]),
    ],
  }
  return { command: node, args: ['--no-warnings', launcher, JSON.stringify(jail)] }
}

type KernelSupport = { landlock: number; hasFilter: boolean }
let support: KernelSupport | undefined

/** landlock_create_ruleset, which has this number on every architecture, and its flag that asks for the version. */
const createRuleset = 444
const asksForVersion = 1
/** The option of prctl that sets a seccomp mode, and the mode that filters system calls. */
const setSeccomp = 22
const seccompFilter = 2

/** Asks the kernel once, by calls that change nothing. */
function findKernelSupport(): KernelSupport {
  if (support !== undefined) return support
  const libc = koffi.load(null)
  const systemCall = libc.func('int64_t syscall(int64_t number, int64_t attributes, int64_t size, int64_t flags)')
  const prctl = libc.func('int prctl(int option, uint64_t mode, void *filter, uint64_t unused, uint64_t alsoUnused)')
  const landlock = Math.max(0, Number(systemCall(createRuleset, 0, 0, asksForVersion)))
  // A filter at no address: EFAULT from a kernel with filters, EINVAL from one without.
  const isRefused = prctl(setSeccomp, seccompFilter, null, 0, 0) === -1
  support = { landlock, hasFilter: isRefused && koffi.errno() === koffi.os.errno.EFAULT }
  return support
}

/** What this kernel lacks, in sentences for the operator. `faults` and `notes` are empty where everything works. */
export type MissingParts = {
  /** Parts that no other wall replaces. */
  faults: string[]
  /** Parts that matter little, because the filter and the remaining rules cover most of them. */
  notes: string[]
}

export function listMissingParts({ landlock, hasFilter }: KernelSupport = findKernelSupport()): MissingParts {
  const select = (parts: [isMissing: boolean, sentence: string][]) =>
    parts.filter(([isMissing]) => isMissing).map(([, sentence]) => sentence)
  return {
    faults: select([
      [landlock < 1, 'Landlock is not available: parsers can read and write the files of their user.'],
      [landlock === 1, 'Landlock has version 1: clamd and freshclam can reach the files of their user.'],
      [
        !hasFilter,
        'seccomp filters are not available: parsers can use the network and signal processes of their user.',
      ],
    ]),
    notes: select([
      [landlock >= 1 && landlock < 4, 'Landlock has no network rules: freshclam can connect to every TCP port.'],
      [
        landlock >= 1 && landlock < 3 && !hasFilter,
        'Landlock cannot refuse truncation: parsers can empty files of their user.',
      ],
    ]),
  }
}
