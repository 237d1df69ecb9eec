import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readDockerfile } from '../../../../scripts/release/image.ts'
import { extractNotes } from '../../../../scripts/release/notes.ts'
import { hashFile, pack } from '../../../../scripts/release/pack.ts'
import { findObstacles } from '../../../../scripts/release/publish.ts'
import { toInstallAdvice } from '../../src/engines/clamav/installation.ts'
import { readText, readYaml, repository } from './files.ts'

const work = mkdtempSync(join(tmpdir(), 'assay-release-test-'))
after(() => rmSync(work, { recursive: true }))

test('the same files give the same archive, whoever packs them and when', () => {
  const make = (name: string, files: string[], mode: number, time: number) => {
    const dir = join(work, name, 'files')
    mkdirSync(dir, { recursive: true })
    for (const file of files) {
      writeFileSync(join(dir, file), file)
      chmodSync(join(dir, file), file === 'program' ? mode | 0o100 : mode)
      utimesSync(join(dir, file), time, time)
    }
    symlinkSync('program', join(dir, 'link'))
    const file = join(work, `${name}.tar.gz`)
    pack({ dir: join(work, name), names: ['files'], file, epoch: 1_700_000_000 })
    return file
  }
  const one = make('one', ['a', 'b', 'program'], 0o600, 1000)
  const other = make('other', ['program', 'b', 'a'], 0o664, 2000)
  assert.equal(hashFile(one), hashFile(other))
  const [, ...listed] = execFileSync('tar', ['-tvzf', one, '--full-time', '--utc'], { encoding: 'utf8' }).split('\n')
  assert.match(listed[0] ?? '', /^-rw-r--r-- 0\/0 .* 2023-11-14 22:13:20 files\/a$/)
  assert.match(listed[3] ?? '', /^-rwxr-xr-x 0\/0 .* files\/program$/)
  const third = make('third', ['a', 'b', 'c', 'program'], 0o600, 1000)
  assert.notEqual(hashFile(one), hashFile(third))
})

test('release notes are the section of the version in the changelog', () => {
  const changelog = '# Changelog\n\n## [1.1.0] - 2027-01-02\n\n### Added\n\n- new\n\n## [1.0.0] - 2026-01-01\n\n- old\n'
  assert.deepEqual(extractNotes(changelog, '1.1.0'), { date: '2027-01-02', text: '### Added\n\n- new\n' })
  assert.deepEqual(extractNotes(`${changelog}\n[1.0.0]: https://x.test\n`, '1.0.0').text, '- old\n')
  assert.throws(() => extractNotes(changelog, '1.0'), /has no section/)
  assert.throws(() => extractNotes('## [1.0.0] - x\n\n## [0.9.0] - y\n- z', '1.0.0'), /says nothing/)
  const { version } = JSON.parse(readText('package.json')) as { version: string }
  assert.match(extractNotes(readText('CHANGELOG.md'), version).text, /^### Added$/m)
})

test('a release needs a clean tree, its tag, its date and all credentials', () => {
  const env = { NODE_AUTH_TOKEN: 'a', GH_TOKEN: 'b', RELEASE_IMAGE: 'c' }
  const ready = { version: '1.0.0', date: '2026-01-01', isClean: true, tags: ['v1.0.0'], env, missingPrograms: [] }
  assert.deepEqual(findObstacles(ready), [])
  const obstacles = [
    [{ isClean: false }, /working tree/],
    [{ tags: ['v1.0.1', '1.0.0'] }, /tag v1\.0\.0/],
    [{ date: 'unreleased' }, /no date/],
    [{ env: { ...env, GH_TOKEN: '' } }, /^GH_TOKEN/],
    [{ missingPrograms: ['gh'] }, /program gh/],
  ] as const
  for (const [change, text] of obstacles) {
    const [found = '', ...more] = findObstacles({ ...ready, ...change } as typeof ready)
    assert.match(found, text)
    assert.deepEqual(more, [])
  }
})

/** An installation with the real launcher and programs of the test in the place of Node and of the system's. */
function makeHome(name: string, cpu: string, programs: Record<string, string>) {
  const home = join(work, name)
  const bin = join(home, 'programs')
  const nodeDir = join(home, `node_modules/node-linux-${cpu}`)
  for (const dir of [bin, nodeDir, join(home, 'packaging'), join(home, 'node_modules/.bin')])
    mkdirSync(dir, { recursive: true })
  cpSync(join(repository, 'packaging/assay'), join(home, 'packaging/assay'))
  symlinkSync('packaging/assay', join(home, 'assay'))
  for (const [program, script] of Object.entries(programs)) {
    const file = program === 'node' ? join(home, 'node_modules/.bin/node') : join(bin, program)
    writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  return (...args: string[]) => {
    const env = { PATH: `${bin}:/usr/bin:/bin` }
    const { status, stdout, stderr } = spawnSync(join(home, 'assay'), args, { cwd: '/', env, encoding: 'utf8' })
    return { status, output: `${stdout}${stderr}`, home }
  }
}

test('the launcher starts the service of its installation, from everywhere', () => {
  const run = makeHome('works', 'x64', { node: 'echo "$@"' })
  const { status, output, home } = run('serve', '--json', 'a b')
  assert.equal(output, `--max-semi-space-size=16 ${home}/packages/server/src/main.ts serve --json a b\n`)
  assert.equal(status, 0)
})

const broken = 'echo "version GLIBC_2.28 not found" >&2; exit 1'
const cases = [
  { name: 'no-processor', cpu: 'x64', programs: { uname: 'echo riscv64' }, says: /x86_64 and aarch64.*riscv64/ },
  {
    name: 'other-processor',
    cpu: 'arm64',
    programs: { uname: 'echo x86_64', getconf: 'echo glibc 2.17', node: 'exit 126' },
    says: /archive is for arm64, and this machine needs the archive for x64/,
  },
  {
    name: 'old-glibc',
    cpu: process.arch,
    programs: { getconf: 'echo glibc 2.27', node: broken },
    says: /does not start: version GLIBC_2\.28 not found\nAssay needs glibc 2\.28 or newer/,
  },
  {
    name: 'musl',
    cpu: process.arch === 'x64' ? 'arm64' : 'x64',
    // The loader of the other processor is missing here, as every loader of glibc is on Alpine.
    programs: { uname: `echo ${process.arch === 'x64' ? 'aarch64' : 'x86_64'}`, node: broken },
    says: /has no \/lib.*ld-linux.*\. Alpine .* Run the container image/s,
  },
]
for (const { name, cpu, programs, says } of cases) {
  test(`the launcher says what to do: ${name}`, () => {
    const { status, output } = makeHome(name, cpu, { node: 'echo started', ...programs })('serve')
    assert.match(output, says)
    assert.equal(status, 1)
  })
}

test('the launcher does not refuse a system that it does not know', () => {
  const run = makeHome('unknown', process.arch, { getconf: 'exit 1', node: 'echo started' })
  assert.equal(run('serve').output, 'started\n')
})

const hasSystemctl = spawnSync('systemctl', ['--version']).status === 0
test('service install writes and enables the unit', { skip: !hasSystemctl && 'systemctl is not installed' }, () => {
  const home = join('/opt', `assay-test-${process.pid}`)
  const root = join(work, 'system')
  mkdirSync(root)
  // The command refuses an installation in a directory that the service cannot see, as that of this test may be.
  const program = join(repository, 'packages/server/src/main.ts')
  const refused = spawnSync(process.execPath, [program, 'service', 'install', '--root', root], { encoding: 'utf8' })
  const isHidden = /^\/(?:home|root|tmp)\//.test(repository)
  if (isHidden) assert.match(refused.stderr, /^Move .* to \/opt\/assay, .*: the service cannot see \/\w+\/\.$/m)
  if (process.getuid?.() !== 0) return
  try {
    mkdirSync(home)
    for (const name of ['packages', 'node_modules', 'packaging', 'package.json', 'docs'])
      symlinkSync(join(repository, name), join(home, name))
    const flags = ['--preserve-symlinks', '--preserve-symlinks-main']
    const args = ['packages/server/src/main.ts', 'service', 'install', '--root', root]
    const installed = spawnSync(process.execPath, [...flags, ...args], { cwd: home, encoding: 'utf8' })
    assert.equal(installed.stderr, '')
    assert.match(installed.stdout, /^The service assay is enabled\./)
    const unit = readFileSync(join(root, 'etc/systemd/system/assay.service'), 'utf8')
    assert.match(unit, new RegExp(`^ExecStart=${home}/packaging/assay serve$`, 'm'))
    assert.doesNotMatch(unit, /\/opt\/assay\//)
    const wanted = readlinkSync(join(root, 'etc/systemd/system/multi-user.target.wants/assay.service'))
    assert.match(wanted, /\/etc\/systemd\/system\/assay\.service$/)
    writeFileSync(join(root, 'etc/assay/assay.env'), 'ASSAY_REGION=eu\n')
    spawnSync(process.execPath, [...flags, ...args], { cwd: home })
    assert.equal(readFileSync(join(root, 'etc/assay/assay.env'), 'utf8'), 'ASSAY_REGION=eu\n')
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test('the workflow runs the documented commands, and names what it takes from others by its digest', () => {
  type Job = { container: { image: string }; steps: { run?: string; uses?: string }[] }
  const [workflow] = readYaml<{ jobs: Record<string, Job> }>('.github/workflows/ci.yml')
  const jobs = Object.values(workflow?.jobs ?? {})
  const [, image] = /^ARG NODE=(\S+)$/m.exec(readText('Dockerfile')) ?? []
  for (const { container } of jobs) assert.equal(container.image, image)
  const steps = jobs.flatMap((job) => job.steps)
  for (const { uses } of steps) assert.match(uses ?? '@'.padEnd(41, '0'), /@[0-9a-f]{40}$/)
  const commands = steps.map(({ run }) => run ?? '').join('\n')
  assert.match(commands, /^\.ci\/run$/m)
  assert.match(commands, /^npm run release -- --dry-run$/m)
})

test('the image of a release is started as the Dockerfile says', () => {
  const { packages, config } = readDockerfile(readText('Dockerfile'))
  assert.deepEqual(packages, ['ca-certificates', 'clamav-daemon', 'clamav-freshclam', 'libyara9', 'tini'])
  assert.deepEqual([config.User, config.Entrypoint, config.Cmd], ['10001:10001', ['tini', '--', 'assay'], ['serve']])
  assert(config.Env.includes('ASSAY_HOST=0.0.0.0') && config.Env.includes('ASSAY_CLAMAV_INSTALL=never'))
  assert.deepEqual(config.Healthcheck.Test, ['CMD', 'assay', 'health'])
  assert.deepEqual([config.Healthcheck.StartPeriod, config.Healthcheck.Retries], [120e9, 3])
  assert.throws(() => readDockerfile('FROM a\nFROM b\nRUN x\n'), /installs no packages/)
})

test('where ClamAV is missing, the log says how to install it on this system', () => {
  const expected = {
    'ID=debian': 'type sudo apt-get install --no-install-recommends clamav-daemon clamav-freshclam',
    'ID=linuxmint\nID_LIKE="ubuntu debian"': 'type sudo apt-get install',
    'NAME=Fedora\nID=fedora': 'type sudo dnf install clamd clamav-freshclam',
    'ID="rocky"\nID_LIKE="rhel centos fedora"': 'type sudo dnf install epel-release && sudo dnf install clamd',
    'ID="opensuse-leap"\nID_LIKE="suse opensuse"': 'type sudo zypper install clamav',
    'ID=arch': 'type sudo pacman -S clamav',
    'ID=plan9\nPRETTY_NAME="like debian"': 'install clamd and freshclam with the package manager of this system',
  }
  for (const [release, advice] of Object.entries(expected)) assert(toInstallAdvice(release).startsWith(advice), release)
})
