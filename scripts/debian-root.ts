import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { debianMirror } from './debian-mirror.ts'

const suite = 'bookworm'

export type DebianRoot = {
  /** Starts a command inside in a process group of its own, as a terminal does. */
  start(user: string, script: string): ChildProcess
  /** Runs a command to its end; throws with its output when it fails. */
  run(user: string, script: string): string
  close(): void
}

/**
 * A minimal Debian with the named packages and nothing else. The caches of npm and apt are empty, as they are
 * on a new machine. `from` is a directory that debootstrap made before, which saves minutes.
 */
export function makeDebianRoot(dir: string, packages: string[], from?: string) {
  const include = `--include=${packages.join(',')}`
  // Copied by `cp`, because Node copies neither devices nor owners.
  if (from !== undefined) execFileSync('cp', ['-a', from, dir])
  else
    execFileSync('debootstrap', ['--variant=minbase', include, suite, dir, debianMirror], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  // The Node that the machine has, not the one of the lockfile that runs this script.
  addNode(dir, process.env.npm_node_execpath)
  addNetwork(dir)
}

/**
 * Starts the directory as a machine with its own processes, mounts and shared memory, on this network. `mounts` is a
 * script that runs before, in the same name space, with the directory as `$0`.
 */
export async function openDebianRoot(dir: string, mounts = 'true'): Promise<DebianRoot> {
  const own = 'mount -t proc proc "$0/proc" && mount -t tmpfs -o mode=1777 shm "$0/dev/shm" && exec sleep infinity'
  const script = `${mounts} && ${own}`
  const holder = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child=KILL', 'sh', '-c', script, dir], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const inside = await findInit(holder)
  const enter = (user: string, script: string) => {
    const home = user === 'root' ? '/root' : `/home/${user}`
    const env = [
      ...listInherited(),
      `HOME=${home}`,
      `USER=${user}`,
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin',
    ]
    const spaces = ['--target', inside, '--mount', '--pid', '--', 'chroot', `--userspec=${user}`, dir]
    return [...spaces, 'env', '-i', ...env, 'sh', '-c', `cd && ${script}`]
  }
  return {
    start: (user, script) =>
      spawn('nsenter', enter(user, script), { stdio: ['ignore', 'pipe', 'pipe'], detached: true }),
    run: (user, script) =>
      execFileSync('nsenter', enter(user, script), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }),
    close: () => {
      holder.kill('SIGKILL')
    },
  }
}

/** Installs Node with a copy of the npm that started this script. */
export function addNode(dir: string, node: string | undefined) {
  const { npm_execpath: npm } = process.env
  if (node === undefined || npm === undefined) throw new Error('Start this with npm run: its Node and npm are copied.')
  copyFileSync(node, join(dir, 'usr/local/bin/node'))
  const modules = join(dir, 'usr/local/lib/node_modules')
  mkdirSync(modules, { recursive: true })
  cpSync(dirname(dirname(npm)), join(modules, 'npm'), { recursive: true, dereference: true })
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(dir, 'usr/local/bin', name))
}

/** Copies the settings with which this machine reaches Debian and the registry through mirrors or proxies. */
function addNetwork(dir: string) {
  for (const file of ['/etc/hosts', '/etc/resolv.conf', '/etc/ssl/certs/ca-certificates.crt']) {
    if (existsSync(file)) rmSync(join(dir, file), { force: true })
    if (existsSync(file)) copyFileSync(file, join(dir, file))
  }
}

const listInherited = () => [
  'NPM_CONFIG_CAFILE=/etc/ssl/certs/ca-certificates.crt',
  ...['http_proxy', 'https_proxy', 'no_proxy', 'NPM_CONFIG_REGISTRY', 'ASSAY_PORT']
    .filter((name) => process.env[name] !== undefined)
    .map((name) => `${name}=${process.env[name]}`),
]

/** Finds the outer process id of the first process inside, which exists when its /proc is mounted. */
async function findInit(holder: ChildProcess): Promise<string> {
  const file = `/proc/${holder.pid}/task/${holder.pid}/children`
  for (let tries = 0; tries < 250; tries++) {
    const child = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
    if (child !== '' && readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'sleep') return child
    await sleep(20)
  }
  throw new Error('The root could not be entered: this needs root, and the right to make name spaces.')
}
