import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readDockerfile, systemMode } from '../../../../scripts/release/image.ts'
import { extractNotes } from '../../../../scripts/release/notes.ts'
import { hashFile, pack } from '../../../../scripts/release/pack.ts'
import { findObstacles, listPublishSteps, publish, takeSecrets } from '../../../../scripts/release/publish.ts'
import { listRequirements } from '../../../../scripts/release/requirements.ts'
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

test('in the image, all users may write /tmp, and no program changes its user', () => {
  const dir = join(work, 'system-files')
  for (const [name, mode] of [
    ['tmp', 0o1777],
    ['root', 0o700],
  ] as const) {
    mkdirSync(join(dir, name), { recursive: true })
    chmodSync(join(dir, name), mode)
  }
  writeFileSync(join(dir, 'su'), '')
  chmodSync(join(dir, 'su'), 0o6755)
  const file = join(work, 'system-files.tar')
  pack({ dir, names: ['root', 'su', 'tmp'], file, epoch: 1, mode: systemMode, isCompressed: false })
  const listed = execFileSync('tar', ['-tvf', file], { encoding: 'utf8' }).trim().split('\n')
  assert.deepEqual(
    listed.map((line) => line.split(' ')[0]),
    ['drwx--x--x', '-rwxr-xr-x', 'drwxrwxrwt'],
  )
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

test('no program of the build sees the credentials, and only publishing gets them', () => {
  const env = { NODE_AUTH_TOKEN: 'a', GH_TOKEN: 'b', GITHUB_TOKEN: 'c', RELEASE_IMAGE: 'd', PATH: 'e' }
  assert.deepEqual(takeSecrets(env), { NODE_AUTH_TOKEN: 'a', GH_TOKEN: 'b', GITHUB_TOKEN: 'c' })
  assert.deepEqual(env, { RELEASE_IMAGE: 'd', PATH: 'e' })
})

test('publishing again does the steps that are missing; what cannot be taken back comes last', () => {
  const bin = join(work, 'publishing')
  const log = join(bin, 'log')
  mkdirSync(bin)
  writeFileSync(join(bin, 'file'), '')
  // Questions succeed for what the variable DONE matches; everything else is recorded.
  const script = `#!/bin/sh
case "$1 $2" in
  view*|inspect*|*view) case "$*" in $DONE) echo yes; exit ;; *) exit 1 ;; esac ;;
esac
echo "$(basename "$0") $1 $2 $GH_TOKEN" >>'${log}'\n`
  for (const name of ['npm', 'gh', 'skopeo']) writeFileSync(join(bin, name), script, { mode: 0o755 })
  const run = (done: string) => {
    rmSync(log, { force: true })
    const PATH = `${bin}:${process.env.PATH}`
    publish(listPublishSteps(bin, '1.0.0', 'host/assay'), { GH_TOKEN: 'token', PATH, DONE: done })
    return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  }
  const expected = [
    'skopeo copy --all token',
    'gh release create token',
    'gh release upload token',
    'npm publish --access=public token',
    'npm publish --access=public token',
    'gh release edit token',
  ]
  assert.deepEqual(run('nothing'), expected)
  assert.deepEqual(run('*docker://host/assay:1.0.0'), expected.slice(1))
  assert.deepEqual(run('*@assay/client@1.0.0*'), expected.toSpliced(3, 1))
  assert.deepEqual(run('*'), [])
})

test('a release asks for the programs of the wanted parts before it starts', () => {
  const { programs, asRoot } = listRequirements(['image'])
  for (const name of ['clamd', 'apt-get', '/usr/share/keyrings/debian-archive-keyring.gpg', 'skopeo'])
    assert(programs.includes(name), name)
  assert.equal(asRoot, true)
  assert.deepEqual(listRequirements(['npm']), { programs: ['git', 'tar', 'gzip', 'npm', 'sha256sum'], asRoot: false })
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
  const run = makeHome('works', process.arch, { node: 'echo "$@"' })
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
    programs: { uname: 'echo x86_64', node: 'exit 126' },
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

test('the workflow runs the documented commands, and names what it takes from others by its digest', () => {
  type Job = { container: { image: string }; steps: { run?: string; uses?: string }[] }
  const [workflow] = readYaml<{ jobs: Record<string, Job> }>('.github/workflows/ci.yml')
  const jobs = Object.values(workflow?.jobs ?? {})
  const [, image] = /^ARG NODE=(\S+)$/m.exec(readText('Dockerfile')) ?? []
  for (const { container } of jobs) assert.equal(container.image, image)
  const steps = jobs.flatMap((job) => job.steps)
  for (const { uses } of steps) assert.match(uses ?? '@'.padEnd(41, '0'), /@[0-9a-f]{40}$/)
  const commands = steps.map(({ run }) => run ?? '').join('\n')
  // git refuses a directory that belongs to another user, as the one of a container job does.
  assert.match(commands, /safe\.directory "\$GITHUB_WORKSPACE"\ngit init/)
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
