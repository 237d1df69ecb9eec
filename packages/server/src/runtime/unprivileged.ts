import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** How to start a program so that it does not run as root. */
export type Unprivileged = {
  /** Owner for the files the program must write; undefined when we are that user already. */
  owner: { uid: number; gid: number } | undefined
  /** What to spawn instead of the plain command. */
  wrap(command: string, args: string[]): { command: string; args: string[]; uid?: number; gid?: number }
}

/**
 * Started as root, picks an ordinary user: the first of `users` that there is. That user cannot enter a clone or data directory below a closed home such
 * as /root; then the program keeps one capability of root's, the one to search directories and read files, and no other.
 */
export function chooseUnprivileged(what: string, users: string[], mustReach: string[]): Unprivileged {
  if (process.getuid?.() !== 0) return { owner: undefined, wrap: (command, args) => ({ command, args }) }
  const owner = findUser(what, users)
  const plain: Unprivileged = { owner, wrap: (command, args) => ({ command, args, ...owner }) }
  if (canReach(plain, mustReach)) return plain
  const searching: Unprivileged = {
    owner,
    wrap: (command, args) => ({ command: 'setpriv', args: [...searchingAs(owner), command, ...args] }),
  }
  if (canReach(searching, mustReach)) return searching
  throw new Error(
    `The user ${owner.name} cannot enter ${mustReach.join(' or ')}, and Assay does not run its ${what} as root. ` +
      'Keep Assay and ASSAY_DATA_DIR below directories that all users may enter, such as /opt/assay and /var/lib/assay.',
  )
}

/**
 * Also ends with us, however we end, and nothing it starts can become more than it is. Programs that parse what strangers
 * send are started this way: one that hangs in a loop would notice nothing of our end by itself.
 */
export function wrapGuarded(user: Unprivileged, command: string, args: string[], asRoot = process.getuid?.() === 0) {
  // No core dumps: they would put what was being parsed on a disk, in clear.
  const bounded = ['--core=0:0', command, ...args]
  const inner = user.wrap('prlimit', bounded)
  if (inner.command === 'setpriv') return { command: 'setpriv', args: ['--pdeathsig=KILL', ...inner.args] }
  const guard = [
    ...['--pdeathsig=KILL', '--no-new-privs'],
    ...(asRoot ? ['--inh-caps=-all', '--bounding-set=-all'] : []),
    ...(inner.uid === undefined ? [] : [`--reuid=${inner.uid}`, `--regid=${inner.gid}`, '--clear-groups']),
  ]
  return { command: 'setpriv', args: [...guard, '--', 'prlimit', ...bounded] }
}

const searchingAs = ({ uid, gid }: { uid: number; gid: number }) => [
  // Without it access(2) leaves capabilities out of account for all but root, and PostgreSQL asks access(2) for its programs.
  '--securebits=+no_setuid_fixup',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--clear-groups',
  '--no-new-privs',
  '--inh-caps=-all,+dac_read_search',
  '--ambient-caps=-all,+dac_read_search',
  '--',
]

function canReach(as: Unprivileged, paths: string[]): boolean {
  return paths.every((path) => {
    // `-e` asks the kernel; `-x` would only read the mode, which knows nothing of capabilities.
    const { command, args, uid, gid } = as.wrap('test', ['-e', `${path}/.`])
    const options = {
      stdio: 'ignore' as const,
      cwd: '/',
      ...(uid === undefined || gid === undefined ? {} : { uid, gid }),
    }
    return spawnSync(command, args, options).status === 0
  })
}

function findUser(what: string, wantedUsers: string[]): { name: string; uid: number; gid: number } {
  const known = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const wanted of wantedUsers) {
    const [name, , uid, gid] = known.find(([name]) => name === wanted) ?? []
    if (name !== undefined && Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    `There is no user ${wantedUsers.join(', ')} to run the ${what} as; create one, or start as an ordinary user.`,
  )
}
