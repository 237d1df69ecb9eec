import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { listDebianSources } from '../debian-mirror.ts'

export const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** Packages of every image: a shell and its programs, users, time zones; `usr-is-merged` in the place of a script. */
const basePackages = ['base-files', 'base-passwd', 'coreutils', 'dash', 'libc-bin', 'tzdata', 'usr-is-merged']
/** Files that nobody reads in a container. Copyright files stay, which licences ask for. */
const excluded = ['./usr/share/man', './usr/share/info', './usr/share/locale', './usr/share/lintian', './usr/share/bug']
const user = { name: 'assay', id: 10001, home: '/var/lib/assay' }

export type DebianPackage = { name: string; version: string; architecture: string }

/**
 * Unpacks packages of Debian 12 with their dependencies and security updates into a new root, for any architecture:
 * apt resolves and verifies them, and no script or program of them is run. The few files that their scripts would
 * make are written here.
 */
export function unpackDebian(root: string, architecture: string, packages: string[], work: string): DebianPackage[] {
  const debs = download(architecture, [...basePackages, ...packages], work)
  mkdirSync(root)
  for (const name of ['bin', 'lib', 'sbin', ...(architecture === 'amd64' ? ['lib64'] : [])]) {
    mkdirSync(join(root, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(root, name))
  }
  mkdirSync(join(root, 'var/lib/dpkg'), { recursive: true })
  const unpacked = debs.map((deb) => unpack(deb, root))
  writeSystemFiles(root)
  return unpacked
}

function download(architecture: string, packages: string[], work: string): string[] {
  const dir = join(work, `apt-${architecture}`)
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'etc/apt.conf.d'])
    mkdirSync(join(dir, name), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(dir, name), text)
  write('status', '')
  write('sources.list', listDebianSources(`[signed-by=${debianKeyring}]`))
  const settings = {
    Dir: dir,
    'Dir::State': 'state',
    'Dir::State::status': join(dir, 'status'),
    'Dir::Cache': 'cache',
    'Dir::Etc': 'etc',
    'Dir::Etc::SourceList': join(dir, 'sources.list'),
    'Dir::Etc::Trusted': '/dev/null',
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Install-Recommends': 'false',
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
    'Debug::NoLocking': 'true',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";\n`)
  write('apt.conf', lines.join(''))
  const env = { ...process.env, APT_CONFIG: join(dir, 'apt.conf'), LC_ALL: 'C' }
  const run = (...args: string[]) =>
    execFileSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  run('update')
  run('install', '-y', '--download-only', ...packages)
  const archives = join(dir, 'cache/archives')
  const names = readdirSync(archives).filter((name) => name.endsWith('.deb'))
  return names.sort().map((name) => join(archives, name))
}

/** Unpacks one package and records it as dpkg does, where scanners for vulnerabilities look. */
function unpack(deb: string, root: string): DebianPackage {
  const exclude = excluded.map((path) => `--exclude=${path}`).join(' ')
  const doc = "--wildcards --wildcards-match-slash --exclude='./usr/share/doc/*/[!c]*'"
  const script = `set -e; dpkg-deb --fsys-tarfile "$1" | tar -x -p --no-same-owner --keep-directory-symlink ${exclude} ${doc} -C "$2"`
  execFileSync('sh', ['-c', script, 'sh', deb, root], { stdio: ['ignore', 'ignore', 'inherit'] })
  const control = execFileSync('dpkg-deb', ['--field', deb], { encoding: 'utf8' })
  appendFileSync(join(root, 'var/lib/dpkg/status'), `${control.replace(/\n/, '\nStatus: install ok unpacked\n')}\n`)
  const find = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? ''
  return { name: find('Package'), version: find('Version'), architecture: find('Architecture') }
}

function writeSystemFiles(root: string) {
  const path = (name: string) => join(root, name)
  const { name, id, home } = user
  for (const file of ['passwd', 'group'])
    copyFileSync(path(`usr/share/base-passwd/${file}.master`), path(`etc/${file}`))
  appendFileSync(path('etc/passwd'), `${name}:x:${id}:${id}::${home}:/usr/sbin/nologin\n`)
  appendFileSync(path('etc/group'), `${name}:x:${id}:\n`)
  const nsswitch = path('usr/share/libc-bin/nsswitch.conf')
  if (existsSync(nsswitch)) copyFileSync(nsswitch, path('etc/nsswitch.conf'))
  const authorities = path('usr/share/ca-certificates/mozilla')
  const certificates = readdirSync(authorities).sort()
  mkdirSync(path('etc/ssl/certs'), { recursive: true })
  const bundle = certificates.map((file) => readFileSync(join(authorities, file), 'utf8'))
  writeFileSync(path('etc/ssl/certs/ca-certificates.crt'), bundle.join(''))
  for (const dir of ['var/cache', 'var/log', 'var/lib/apt']) rmSync(path(dir), { recursive: true, force: true })
  for (const dir of ['var/cache', 'var/log']) mkdirSync(path(dir))
}
