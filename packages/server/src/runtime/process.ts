import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { userInfo } from 'node:os'
import manifest from '../../package.json' with { type: 'json' }

/** The version of Assay. */
export const { version } = manifest

/** Names a process uniquely over time: process IDs are reused, but not together with the start time and the boot. */
export function findProcessIdentity(pid: number): string | undefined {
  try {
    const fields = readStat(pid)
    const [state, startTicks] = [fields[0], fields[19]]
    if (state === 'Z' || state === 'X') return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
    return `${pid}-${startTicks}-${boot}`
  } catch {
    return undefined
  }
}

/** Whether the process with this identity still runs. */
export const isRunning = (identity: string): boolean => findProcessIdentity(Number.parseInt(identity, 10)) === identity

const tickMs = 10

/** The processor time that a process and its descendants have used, in steps of 10 ms; undefined when it is gone. */
export function findProcessorMs(pid: number): number | undefined {
  try {
    const fields = readStat(pid)
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()
    const own = (Number(fields[11]) + Number(fields[12])) * tickMs
    return children.split(' ').reduce((sum, child) => (child === '' ? sum : sum + readProcessorMs(Number(child))), own)
  } catch {
    return undefined
  }
}

/** The same, with 0 for a process that is gone. */
export const readProcessorMs = (pid: number): number => findProcessorMs(pid) ?? 0

/**
 * The fields of `/proc/PID/stat` from the third on, which is the state. The second is the name of the program, in
 * parentheses, which may contain anything.
 */
function readStat(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Opens the C library of this process. Koffi is loaded with the first call, because that takes 15 ms. */
export function openSystemLibrary() {
  const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi')
  return { library: koffi.load(null), koffi }
}

/** The name in the audit log of the person who runs a command: the user of the system. */
export const toCommandActor = (): string => `command line: ${findSystemUser()}`

/** The name in the audit log of what the service does by itself. */
export const toServiceActor = (): string => `service: ${findSystemUser()}`

/** A user id may have no name, for example in a container. sudo tells who called it. */
function findSystemUser(): string {
  const { SUDO_USER: caller } = process.env
  const user = findUserName()
  return caller === undefined || caller === '' || caller === user ? user : `${caller} as ${user}`
}

function findUserName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** Starts a program as an ordinary user instead of root. */
export type Unprivileged = {
  /** Owner for files that the program must write; undefined when this process does not run as root. */
  owner: { uid: number; gid: number } | undefined
  /** The program has the capability to read every file, because it could not reach its own otherwise. */
  hasCapability?: boolean
  /** Returns what to spawn instead of the plain command. */
  wrap(command: string, args: string[]): { command: string; args: string[]; uid?: number; gid?: number }
}

/**
 * When this process runs as root, chooses the first of `users` that exists. That user may be unable to enter a
 * directory below a closed home such as /root; then the program keeps one capability, to search directories and read
 * files.
 */
export function chooseUnprivileged(program: string, users: string[], mustReach: string[]): Unprivileged {
  if (process.getuid?.() !== 0) return { owner: undefined, wrap: (command, args) => ({ command, args }) }
  const owner = findUser(program, users)
  const plain: Unprivileged = { owner, wrap: (command, args) => ({ command, args, ...owner }) }
  if (canReach(plain, mustReach)) return plain
  const withSearch: Unprivileged = {
    owner,
    hasCapability: true,
    wrap: (command, args) => ({ command: 'setpriv', args: [...toSearchFlags(owner), command, ...args] }),
  }
  if (canReach(withSearch, mustReach)) return withSearch
  throw new Error(
    `The user ${owner.name} cannot enter ${mustReach.join(' or ')}, and Assay does not run its ${program} as root. ` +
      'Keep Assay and ASSAY_DATA_DIR below directories that all users may enter, such as /opt/assay and /var/lib/assay.',
  )
}

/**
 * The command that starts a program without root's privileges and without a way to gain any. `asRoot` tells that the
 * program starts as root, if only of its own namespace. The jail of the program does the rest.
 */
export function wrapGuarded(user: Unprivileged, command: string, args: string[], asRoot = process.getuid?.() === 0) {
  const { uid, gid, ...inner } = user.wrap(command, args)
  if (!asRoot || inner.command === 'setpriv') return inner
  const guard = [
    '--no-new-privs',
    '--inh-caps=-all',
    '--bounding-set=-all',
    ...(uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']),
  ]
  return { command: 'setpriv', args: [...guard, '--', command, ...args] }
}

const toSearchFlags = ({ uid, gid }: { uid: number; gid: number }) => [
  // Without this bit access(2) ignores capabilities of ordinary users, and PostgreSQL calls access(2) for its programs.
  '--securebits=+no_setuid_fixup',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--clear-groups',
  '--no-new-privs',
  '--inh-caps=-all,+dac_read_search',
  '--ambient-caps=-all,+dac_read_search',
  '--',
]

/** One process looks at all paths, because starting one takes several milliseconds of a service's start. */
function canReach(user: Unprivileged, paths: string[]): boolean {
  if (paths.length === 0) return true
  // `stat` asks the kernel; `test -x` would check only the mode bits, which ignore capabilities.
  const { command, args, uid, gid } = user.wrap('stat', ['--format=', '--', ...paths.map((path) => `${path}/.`)])
  const options = {
    stdio: 'ignore' as const,
    cwd: '/',
    ...(uid === undefined || gid === undefined ? {} : { uid, gid }),
  }
  return spawnSync(command, args, options).status === 0
}

function findUser(program: string, wantedUsers: string[]): { name: string; uid: number; gid: number } {
  const entries = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const wanted of wantedUsers) {
    const [name, , uid, gid] = entries.find(([name]) => name === wanted) ?? []
    if (name !== undefined && Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    `There is no user ${wantedUsers.join(', ')} to run the ${program} as; create one, or start as an ordinary user.`,
  )
}
