import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dataRoot } from './data-root.ts'
import { findFreePort } from './free-port.ts'
import { findProcesses } from './processes.ts'
import { waitUntil } from './wait-until.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const nobody = 65534

/**
 * A fresh copy of the repository, with the packages that npm has installed in the repository, in the home directory of a
 * user who has only the programs of the system. The user is an ordinary one also when root runs the tests: all other
 * tests run the service as root then.
 */
export async function openNewcomer() {
  const home = mkdtempSync(join(dataRoot, 'assay-newcomer-'))
  // Every path of the program has a blank and a letter beyond ASCII, as in some home directories.
  const clone = join(home, 'Prüfung von Dateien', 'assay')
  copyRepository(clone)
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  if (user.uid !== undefined) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, home])
  const removePackages = addPackages(home, clone, user.uid)
  chmodSync(home, 0o755)
  const port = await findFreePort()
  const options = { cwd: clone, env: { ...newEnvironment(), HOME: home, ASSAY_PORT: String(port) }, ...user }
  let started: Started | undefined

  return {
    clone,
    port,
    options,
    start(command: string): Started {
      // A process group of its own, as a terminal gives it, so that Ctrl-C reaches every process in it.
      const child = spawn('sh', ['-c', command], { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
      started = collectOutput(child)
      return started
    },
    async close() {
      const { child, ended } = started ?? {}
      if (child?.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT')
      await ended
      await waitUntil('Ctrl-C to end every process', () => findProcesses(clone).length === 0)
      removePackages()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Copies what a clone holds, including changes that are not committed yet. */
function copyRepository(to: string) {
  const left = new Set(
    ['.git', 'node_modules', 'data', 'packages/server/dist', 'packages/server/models/built'].map((name) =>
      join(repository, name),
    ),
  )
  cpSync(repository, to, { recursive: true, filter: (path) => !left.has(path) && !path.includes('/node_modules/') })
}

/**
 * Gives the copy the packages of the repository: an installation takes a minute and a half of processor time. The user
 * may create files beside the packages; the packages keep their owner, because they are those of the repository.
 * Returns a function that takes them away again.
 */
function addPackages(home: string, clone: string, uid: number | undefined): () => void {
  const undo: (() => void)[] = []
  for (const path of globSync(['node_modules', 'packages/*/node_modules'], { cwd: repository })) {
    const [from, to] = [join(repository, path), join(clone, path)]
    const unmount = uid === undefined ? undefined : mountPackages(from, to, home, uid)
    if (unmount === undefined) linkPackages(from, to, uid)
    else undo.push(unmount)
  }
  return () => {
    for (const each of undo) each()
  }
}

/**
 * Lays a directory that belongs to the user over the packages. Returns undefined where that is impossible, or where the
 * mount would outlive a test run that is killed: scripts/test.ts gives a run of root mounts of its own.
 */
function mountPackages(from: string, to: string, home: string, uid: number): (() => void) | undefined {
  // Unlike ASSAY_TEST_MEMORY_DIR, which a caller may set, only scripts/test.ts sets this, with the mounts of its own.
  if (process.env.ASSAY_TEST_MEMORY_OWNER === undefined) return undefined
  const layer = mkdtempSync(join(home, 'layer-'))
  const [upper, work] = [join(layer, 'upper'), join(layer, 'work')]
  for (const dir of [upper, work, to]) mkdirSync(dir, { recursive: true })
  // Hides the directory of this name: the user starts without caches.
  const isHidden = spawnSync('mknod', [join(upper, '.cache'), 'c', '0', '0']).status === 0
  chownSync(upper, uid, uid)
  const options = `lowerdir=${from},upperdir=${upper},workdir=${work}`
  if (!isHidden || spawnSync('mount', ['-t', 'overlay', 'overlay', '-o', options, to]).status !== 0) return undefined
  return () => void execFileSync('umount', ['--lazy', to])
}

/** Gives the copy the packages as hard links. */
function linkPackages(from: string, to: string, uid: number | undefined) {
  try {
    execFileSync('cp', ['-al', from, dirname(to)], { stdio: 'pipe' })
  } catch {
    // The directory for temporary files is on another file system.
    execFileSync('cp', ['-a', '--reflink=auto', from, dirname(to)])
  }
  rmSync(join(to, '.cache'), { recursive: true, force: true })
  if (uid !== undefined) execFileSync('find', [to, '-type', 'd', '-exec', 'chown', `${uid}:${uid}`, '{}', '+'])
}

/** The environment without what npm and this run added to it. */
function newEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|ASSAY_|NODE_TEST|NODE_OPTIONS|INIT_CWD)/i.test(name),
  )
  const path = (process.env.PATH ?? '').split(':').filter((dir) => !/node_modules|node-gyp/.test(dir))
  return { ...Object.fromEntries(kept), PATH: path.join(':') }
}

type Started = ReturnType<typeof collectOutput>

function collectOutput(child: ChildProcess) {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (part) => {
      output[name] += part
    })
  return { child, output, ended: new Promise((resolve) => child.once('exit', resolve)) }
}
