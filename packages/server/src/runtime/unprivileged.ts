import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** How to start a program so that it does not run as root. */
export type Unprivileged = {
  /** Owner for the files the program must write; undefined when we are that user already. */
  owner: { uid: number; gid: number } | undefined
  /** What to spawn instead of the plain command. */
  wrap(command: string, args: string[]): { command: string; args: string[]; uid?: number; gid?: number }
}

const preferredUsers = ['postgres', 'node', 'nobody']

/**
 * Started as root, picks an ordinary user. That user cannot enter a clone or data directory below a closed home such
 * as /root; then the program keeps one capability of root's, the one to search directories and read files, and no other.
 */
export function chooseUnprivileged(mustReach: string[]): Unprivileged {
  if (process.getuid?.() !== 0) return { owner: undefined, wrap: (command, args) => ({ command, args }) }
  const owner = findUser()
  const plain: Unprivileged = { owner, wrap: (command, args) => ({ command, args, ...owner }) }
  if (canReach(plain, mustReach)) return plain
  const searching: Unprivileged = {
    owner,
    wrap: (command, args) => ({ command: 'setpriv', args: [...searchingAs(owner), command, ...args] }),
  }
  if (canReach(searching, mustReach)) return searching
  throw new Error(
    `The user ${owner.name} cannot enter ${mustReach.join(' or ')}, and Assay does not run its database as root. ` +
      'Keep Assay and ASSAY_DATA_DIR below directories that all users may enter, such as /opt/assay and /var/lib/assay.',
  )
}

const searchingAs = ({ uid, gid }: { uid: number; gid: number }) => [
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

function findUser(): { name: string; uid: number; gid: number } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const wanted of preferredUsers) {
    const [name, , uid, gid] = users.find(([name]) => name === wanted) ?? []
    if (name !== undefined && Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    `There is no user ${preferredUsers.join(', ')} to run the database as; create one, or start as an ordinary user.`,
  )
}
