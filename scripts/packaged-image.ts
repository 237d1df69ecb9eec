import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianMirror, listDebianSources } from './debian-mirror.ts'
import { addNode } from './debian-root.ts'
import { trialSettings } from './release/try-service.ts'

export const imageName = 'localhost/assay:check'
const caBundle = '/etc/ssl/certs/ca-certificates.crt'
/** System calls that Docker's default profile refuses and podman's allows; without them engines get no namespaces. */
const refusedByDocker = ['unshare', 'setns', 'mount', 'umount', 'umount2', 'clone3', 'pivot_root']

/**
 * Builds the image with buildah. When the registry cannot be reached, the base is made from Debian by debootstrap
 * and Node. The build uses the mirrors of apt and npm of this machine.
 */
export function buildImage(repository: string) {
  const bases: string[] = []
  for (const [, name = '', image = ''] of readFileSync(join(repository, 'Dockerfile'), 'utf8').matchAll(
    /^ARG (DEBIAN|NODE)=(\S+)$/gm,
  )) {
    if (spawnSync('podman', ['pull', '--quiet', `docker.io/library/${image}`], { stdio: 'ignore' }).status === 0)
      continue
    // An image that was made here cannot have the digest of the official one.
    const made = `localhost/${image.replace(/@.*$/, '')}`
    if (spawnSync('podman', ['image', 'exists', made]).status !== 0) makeBase(made, name === 'NODE')
    bases.push('--build-arg', `${name}=${made}`)
  }
  const dir = mkdtempSync(join(tmpdir(), 'assay-build-'))
  try {
    const npmrc = join(dir, 'npmrc')
    writeFileSync(npmrc, 'cafile=/run/build-ca.crt\n')
    const mounts = existsSync(caBundle)
      ? ['-v', `${caBundle}:/run/build-ca.crt:ro`, '-v', `${npmrc}:/root/.npmrc:ro`]
      : []
    const options = [
      '--format',
      'docker',
      '--isolation',
      'chroot',
      '--network',
      'host',
      '--layers',
      ...mounts,
      ...bases,
    ]
    execFileSync('buildah', ['bud', ...options, '-t', imageName, repository], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export function findImageSize(): string {
  const size = execFileSync('podman', ['image', 'inspect', imageName, '--format', '{{.Size}}'], { encoding: 'utf8' })
  return `${Math.round(Number(size) / 1e6)} MB`
}

export type Container = {
  url: string
  podman(...args: string[]): string
  readLog(): string
  kill(): void
  close(): void
}

/** Runs the image as compose.yaml does: without root and capabilities, with writable volume and memory only. */
export function runImage(options: {
  image: string
  volume: string
  port: number
  like: 'docker' | 'podman'
}): Container {
  const name = `assay-check-${process.pid}`
  const dir = mkdtempSync(join(tmpdir(), 'assay-container-'))
  const runtime = ['--cgroup-manager', 'cgroupfs', '--runtime', 'runc']
  const podman = (...args: string[]) => execFileSync('podman', [...runtime, ...args], { encoding: 'utf8' })
  const profile = join(dir, 'seccomp.json')
  writeFileSync(profile, makeSeccompProfile(options.like))
  const settings = { ...trialSettings, ASSAY_PORT: String(options.port) }
  podman(
    'run',
    '--detach',
    '--name',
    name,
    '--network',
    'host',
    '--volume',
    `${options.volume}:/var/lib/assay`,
    '--read-only',
    '--read-only-tmpfs=false',
    '--tmpfs',
    '/tmp',
    '--cap-drop',
    'all',
    '--shm-size',
    '512m',
    '--security-opt',
    'no-new-privileges',
    '--security-opt',
    `seccomp=${profile}`,
    '--ulimit',
    'nofile=16384:16384',
    '--ulimit',
    'nproc=4096:4096',
    '--ulimit',
    'core=0:0',
    ...Object.entries(settings).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    options.image,
  )
  return {
    url: `http://127.0.0.1:${options.port}`,
    podman: (...args) => podman(...args.map((arg) => (arg === '@' ? name : arg))),
    readLog() {
      const { stdout, stderr } = spawnSync('podman', ['logs', name], { encoding: 'utf8' })
      return stdout + stderr
    },
    kill: () => podman('kill', '--signal', 'KILL', name),
    close() {
      spawnSync('podman', ['rm', '--force', name], { stdio: 'ignore' })
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function makeSeccompProfile(like: 'docker' | 'podman'): string {
  const profile = JSON.parse(readFileSync('/usr/share/containers/seccomp.json', 'utf8')) as {
    syscalls: { names: string[]; action: string; includes?: { caps?: string[] } }[]
  }
  for (const rule of profile.syscalls) {
    if (like === 'podman' || rule.action !== 'SCMP_ACT_ALLOW' || rule.includes?.caps !== undefined) continue
    rule.names = rule.names.filter((name) => !refusedByDocker.includes(name))
  }
  return JSON.stringify(profile)
}

/** Makes a base image as close to the official one as possible. */
function makeBase(image: string, withNode: boolean) {
  const dir = mkdtempSync(join(tmpdir(), 'packaged-base-'))
  try {
    execFileSync('debootstrap', ['--variant=minbase', 'bookworm', dir, debianMirror], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    for (const path of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'var/cache/apt', 'var/lib/apt/lists']) {
      rmSync(join(dir, path), { recursive: true, force: true })
      mkdirSync(join(dir, path), { recursive: true })
    }
    writeFileSync(join(dir, 'etc/apt/sources.list'), listDebianSources())
    if (withNode) addNode(dir, process.execPath)
    const archive = execFileSync('tar', ['-C', dir, '-c', '.'], { maxBuffer: 2 ** 31 - 1 })
    execFileSync('podman', ['import', '-', image], {
      input: archive,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
