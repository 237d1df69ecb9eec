import { spawnSync } from 'node:child_process'
import { lchownSync, lstatSync, mkdirSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { OperatorMistake } from '../../domain/problem.ts'
import { openOutsideDir, removeTree } from '../../runtime/files.ts'
import { type Unprivileged, wrapGuarded } from '../../runtime/process.ts'

const tmpfsType = 0x01021994
const memoryDir = '/dev/shm'
/** The link to a scratch directory in memory, in the directory of the program. */
export const scratchName = 'scratch-in-memory'

export type Sandbox = {
  /** Holds what the program unpacks, in clear: in memory, unless the operator accepts a disk. */
  scratchDir: string
  /** `private`: a mount of the program's own and no network; the kernel removes the files when the program ends. */
  kind: 'private' | 'shared memory' | 'disk'
  /** Size of the file system. Assay does not choose the size of /dev/shm: Docker gives a container 64 MB. */
  megabytes: number
  /** The program keeps the capability to read every file, without which it could not reach its own. */
  keepsCapability: boolean
  /** The command that runs a program in the sandbox. */
  wrap(command: string, args: string[]): { command: string; args: string[] }
  /** Removes files that a killed program has left. */
  wipe(): void
}

type Deps = {
  /** Names the program in a message to the operator. */
  name: string
  user: Unprivileged
  /** The directory of the program, which belongs to the service. */
  dir: string
  scratchMegabytes: number
  acceptsDisk: boolean
}

/**
 * A program such as clamd parses hostile files and writes their parts to its scratch directory. The best place is a
 * namespace of its own: no network, and a file system in memory that no other process sees. Where the kernel does not
 * allow that, /dev/shm is used; if that is not in memory either, the operator must accept a disk.
 */
export function chooseSandbox(deps: Deps): Sandbox {
  const privateScratch = join(deps.dir, 'scratch')
  mkdirSync(privateScratch, { recursive: true, mode: 0o700 })
  const isolated = makePrivate(deps, privateScratch)
  const trial = isolated.wrap('true', [])
  if (spawnSync(trial.command, trial.args, { stdio: 'ignore', timeout: 10_000 }).status === 0) return isolated

  if (isInMemory(memoryDir)) {
    const dir = openOutsideDir([memoryDir], join(deps.dir, scratchName))
    return makePlain(deps, join(dir, 'scratch'), 'shared memory')
  }
  if (deps.acceptsDisk) return makePlain(deps, privateScratch, 'disk')
  throw new OperatorMistake(
    `${deps.name} writes content unencrypted while it scans, and there is no file system in memory for it: this process may ` +
      'not mount one, and /dev/shm is not one. Start Assay as root or with user namespaces, mount a tmpfs at ' +
      '/dev/shm, or permit unencrypted content on the disk with ASSAY_SCRATCH=disk.',
  )
}

/** Mounts a new file system in memory, checks that it is one, and executes the program, which drops all privileges. */
const privateScript = `
set -e
mount -t tmpfs -o "$2,noswap" assay "$1" 2>/dev/null || mount -t tmpfs -o "$2" assay "$1"
test "$(stat -f -c %T "$1")" = tmpfs
shift 2
exec "$@"
`

function makePrivate({ user, scratchMegabytes }: Deps, scratchDir: string): Sandbox {
  const { owner } = user
  const options = [
    `size=${scratchMegabytes}m`,
    'mode=0700,nosuid,nodev,noexec',
    ...(owner === undefined ? [] : [`uid=${owner.uid}`, `gid=${owner.gid}`]),
  ].join(',')
  // An ordinary user is root inside a user namespace of its own, which is enough to mount, and no more.
  const namespaces = ['--mount', '--net', ...(owner === undefined ? ['--user', '--map-root-user'] : [])]
  return {
    scratchDir,
    kind: 'private',
    megabytes: scratchMegabytes,
    keepsCapability: user.hasCapability === true,
    wrap(command, args) {
      // The program starts as root of its namespace, whichever user the service runs as.
      const guarded = wrapGuarded(user, command, args, true)
      const script = ['/bin/sh', '-c', privateScript, 'sh', scratchDir, options, guarded.command, ...guarded.args]
      return { command: 'unshare', args: [...namespaces, '--', ...script] }
    },
    wipe() {},
  }
}

function makePlain({ user }: Deps, scratchDir: string, kind: Sandbox['kind']): Sandbox {
  return {
    scratchDir,
    kind,
    megabytes: measureMegabytes(dirname(scratchDir)),
    keepsCapability: user.hasCapability === true,
    wrap: (command, args) => wrapGuarded(user, command, args),
    wipe() {
      removeTree(scratchDir)
      makeDirOfUser(scratchDir, user.owner)
    },
  }
}

function measureMegabytes(dir: string): number {
  const { blocks, bsize } = statfsSync(dir)
  return Math.floor((blocks * bsize) / 1024 ** 2)
}

const isInMemory = (dir: string) => {
  try {
    return statfsSync(dir).type === tmpfsType
  } catch {
    return false
  }
}

/** Makes a directory that only this user can enter, below a directory of the service. */
export function makeDirOfUser(dir: string, owner: Unprivileged['owner']) {
  const uid = owner?.uid ?? process.getuid?.()
  const found = lstatSync(dir, { throwIfNoEntry: false })
  if (found === undefined) {
    mkdirSync(dir, { mode: 0o700 })
    if (owner !== undefined) lchownSync(dir, owner.uid, owner.gid)
  } else if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o777) !== 0o700) {
    throw new Error(`${dir} is not a directory that only the user ${uid} can enter. Remove it.`)
  }
}
