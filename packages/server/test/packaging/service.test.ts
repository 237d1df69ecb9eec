import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { repository } from './files.ts'

const work = realpathSync(mkdtempSync(join(tmpdir(), 'assay-service-test-')))
after(() => rmSync(work, { recursive: true }))

/** Runs a command of `assay service` from an installation in this directory, which consists of links. */
function runService(home: string, ...args: string[]) {
  if (!existsSync(home)) {
    mkdirSync(home, { recursive: true })
    for (const name of ['packages', 'node_modules', 'packaging', 'package.json', 'docs'])
      symlinkSync(join(repository, name), join(home, name))
  }
  const command = ['--preserve-symlinks', '--preserve-symlinks-main', 'packages/server/src/main.ts', 'service', ...args]
  return spawnSync(process.execPath, command, { cwd: home, encoding: 'utf8' })
}

const hasSystemctl = spawnSync('systemctl', ['--version']).status === 0
const skip = !hasSystemctl && 'systemctl is not installed'
test('service install writes the unit for the system in --root, and uninstall removes it', { skip }, () => {
  const root = join(work, 'system')
  const home = join(root, 'opt/assay-1')
  mkdirSync(home, { recursive: true })
  rmSync(home, { recursive: true })
  chmodSync(join(root, 'opt'), 0o755)
  const installed = runService(home, 'install', '--root', root)
  assert.equal(installed.stderr, '')
  assert.match(installed.stdout, /^The service assay is enabled\.\n[^\n]+\n$/)
  const unitFile = join(root, 'etc/systemd/system/assay.service')
  const unit = readFileSync(unitFile, 'utf8')
  assert.match(unit, /^ExecStart=\/opt\/assay-1\/packaging\/assay serve$/m)
  assert.doesNotMatch(unit, new RegExp(`/opt/assay/|${root}`))
  const wanted = join(root, 'etc/systemd/system/multi-user.target.wants/assay.service')
  assert.match(readlinkSync(wanted), /\/etc\/systemd\/system\/assay\.service$/)
  const settings = join(root, 'etc/assay/assay.env')
  assert.match(readFileSync(settings, 'utf8'), / \/opt\/assay-1\/docs\/settings\.md /)
  assert.equal(statSync(settings).mode & 0o777, 0o600)
  writeFileSync(settings, 'ASSAY_REGION=eu\n')
  runService(home, 'install', '--root', root)
  assert.equal(runService(home, 'uninstall', '--root', root).stderr, '')
  assert.deepEqual([existsSync(unitFile), lstatSync(wanted, { throwIfNoEntry: false })], [false, undefined])
  assert.equal(readFileSync(settings, 'utf8'), 'ASSAY_REGION=eu\n')
})

const refusals = {
  'opt/my 100%': /: the path may have letters, digits/,
  'home/reader/assay': /: the service cannot see \/home\/\.$/m,
  'srv/closed/assay': /: other users cannot read .*\/srv\/closed\.$/m,
}
for (const [place, says] of Object.entries(refusals)) {
  test(`service install refuses an installation in ${place}`, () => {
    const root = join(work, 'refusing')
    mkdirSync(join(root, dirname(place)), { recursive: true })
    for (const dir of ['home', 'opt', 'srv']) if (existsSync(join(root, dir))) chmodSync(join(root, dir), 0o755)
    if (place.startsWith('srv')) chmodSync(join(root, 'srv/closed'), 0o750)
    const { status, stderr } = runService(join(root, place), 'install', '--root', root)
    assert.match(stderr, /^Move .* to \/opt\/assay, /m)
    assert.match(stderr, says)
    assert.equal(status, 1)
    assert(!existsSync(join(root, 'etc')))
  })
}
