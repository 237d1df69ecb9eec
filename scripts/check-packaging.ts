import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readCodeBlocks } from '../acceptance/support/code-blocks.ts'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { buildImage, findImageSize, imageName, runImage } from './packaged-image.ts'
import { checkSchemas } from './packaged-schemas.ts'
import { tryArchiveOnSystems } from './packaged-systems.ts'
import { bootWithArchive } from './packaged-unit.ts'
import { packArchive, toArchiveName } from './release/archive.ts'
import { buildSharedParts, type Cpu } from './release/installation.ts'
import { eicar, expectConsole, expectScans, key, trialSettings, waitUntil } from './release/try-service.ts'
import { requirePrograms } from './required-programs.ts'

/**
 * `npm run check:packaging` tries the packaging as far as this machine can, which takes minutes. `-- schemas`,
 * `-- image`, `-- unit` and `-- systems` run one part. Needs root; a part whose programs are missing says so and fails.
 */
const { positionals } = parseArgs({ allowPositionals: true })
const repository = fileURLToPath(new URL('../', import.meta.url))
const work = mkdtempSync(join(tmpdir(), 'assay-packaging-'))

const parts = { schemas: trySchemas, image: tryImage, unit: tryUnit, systems: trySystems }
try {
  for (const [name, run] of Object.entries(parts)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    try {
      await run()
    } catch (error) {
      process.exitCode = 1
      print(`FAILED ${name}: ${(error as Error).message}`)
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}

function trySchemas() {
  const { faults, notes } = checkSchemas(repository)
  for (const note of notes) print(note)
  assert.deepEqual(faults, [])
  requirePrograms('haproxy')
  // The configuration names containers that cannot be resolved here.
  const config = join(work, 'haproxy.cfg')
  const text = readFileSync(join(repository, 'packaging/haproxy.cfg'), 'utf8')
  writeFileSync(config, text.replaceAll(/ api-([12]):8080/g, ' 127.0.0.$1:8080'))
  execFileSync('haproxy', ['-c', '-q', '-f', config], { stdio: 'inherit' })
  print('haproxy: the configuration is valid')
}

async function tryImage() {
  requirePrograms('buildah', 'podman', 'runc', 'debootstrap')
  buildImage(repository)
  print(`image: built, ${findImageSize()}`)
  const volume = `assay-check-${process.pid}`
  const port = await findFreePort()
  try {
    for (const like of ['podman', 'docker'] as const) {
      const container = runImage({ image: imageName, volume, port, like })
      try {
        await expectScans(repository, container.url)
        container.podman('exec', '@', 'assay', 'health')
        expectContents((path) => container.podman('exec', '@', 'cat', `/opt/assay/${path}`))
        const scratch = /no private sandbox/.test(container.readLog()) ? 'shared memory' : 'a private sandbox'
        // The container has less memory than ASSAY_SCRATCH_MB, which the service must report.
        if (like === 'docker') assert.match(container.readLog(), /can unpack into 512 MB, not into the 2048/)
        assert.equal(scratch, like === 'docker' ? 'shared memory' : 'a private sandbox')
        print(`image: ready, EICAR found, a picture scored, as with ${like}'s profile: ClamAV has ${scratch}`)
        if (like === 'docker') container.podman('stop', '--time', '60', '@')
        else container.kill()
      } finally {
        container.close()
      }
    }
  } finally {
    spawnSync('podman', ['volume', 'rm', '--force', volume], { stdio: 'ignore' })
  }
}

/** The image lists its npm packages, and has the licence texts that NOTICE refers to. */
function expectContents(read: (path: string) => string) {
  const { components } = JSON.parse(read('sbom.cdx.json')) as { components: { name: string; version: string }[] }
  const listed = new Set(components.map(({ name, version }) => `${name}@${version}`))
  const manifest = JSON.parse(read('packages/server/package.json')) as Record<string, Record<string, string>>
  const direct = Object.entries(manifest.dependencies ?? {}).filter(([name]) => !name.startsWith('@assay/'))
  assert.deepEqual(
    direct.map(([name, version]) => `${name}@${version}`).filter((name) => !listed.has(name)),
    [],
  )
  assert(!components.some(({ name }) => name === 'nsfwjs'), 'no development dependencies')
  assert.match(read('packages/console/dist/licenses.md'), /## react /)
  assert.match(read('packages/server/models/built/LICENSE'), /MIT/)
}

/** Follows the steps of docs/packaging.md on a machine that has nothing of Assay but the archive. */
async function tryUnit() {
  requirePrograms('debootstrap', 'systemd-nspawn')
  const archive = buildArchive()
  const booted = await bootWithArchive(archive, { ...trialSettings, ASSAY_SANDBOX: 'required' })
  try {
    const curl = `curl -sS --fail -H 'X-API-Key: ${key}'`
    const expectThreat = () => {
      const scan = `${curl} -F file=@- http://127.0.0.1:8080/v1/malware/scan/file`
      const { status } = JSON.parse(booted.run('sh', '-c', `printf '%s' '${eicar}' | ${scan}`))
      assert.equal(status, 'threat')
    }
    const steps = readCodeBlocks('docs/packaging.md').find(({ text }) => text.includes('assay service install'))
    // The machine has no sudo, no network, and ClamAV already.
    const commands = steps?.text.replace(/^sudo apt-get .*$/m, '').replaceAll('sudo ', '') ?? ''
    assert(commands.includes(basename(archive)), 'docs/packaging.md names another archive')
    print(booted.run('sh', '-ec', `cd /root\n${commands}`).trim())
    const files = await expectConsole((path) => booted.run('sh', '-c', `${curl} http://127.0.0.1:8080${path}`))
    print(`unit: the console has ${files} files`)
    const advised = 'ASSAY_DATA_DIR=/var/lib/assay /opt/assay/assay accounts list'
    assert.match(
      booted.run('setpriv', '--reuid=assay', '--regid=assay', '--clear-groups', 'sh', '-c', advised),
      /active/,
    )
    // systemd reports the unit as active when the service is ready, so that no wait is needed.
    expectThreat()
    assert.doesNotMatch(
      booted.run('journalctl', '--unit=assay', '--no-pager'),
      /no private sandbox|cut off from the network/,
    )
    booted.run('systemctl', 'restart', 'assay')
    expectThreat()
    booted.run('systemctl', 'kill', '--signal=KILL', '--kill-who=main', 'assay')
    // Until systemd has noticed the death, it reports the state of before.
    await waitUntil(() => {
      const state = booted.run('systemctl', 'show', 'assay', '--property=NRestarts,ActiveState')
      return /NRestarts=[1-9]/.test(state) && state.includes('=active')
    })
    expectThreat()
    booted.run('/opt/assay/assay', 'service', 'uninstall')
    assert.throws(() => booted.run('systemctl', 'cat', 'assay'))
    print('unit: ready when active, EICAR found, ClamAV has a space of its own; restarted, killed and removed')
  } catch (error) {
    print(booted.run('journalctl', '--unit=assay', '--no-pager', '--lines=30'))
    throw error
  } finally {
    await booted.close()
  }
}

/** Starts the archive on other distributions. */
async function trySystems() {
  requirePrograms('debootstrap', 'nsenter', 'unshare', 'busybox')
  for await (const line of tryArchiveOnSystems(repository, buildArchive(), work)) print(line)
}

/** Builds the archive of the present sources, once for all parts. */
function buildArchive(): string {
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  const cpu = process.arch as Cpu
  const file = join(work, `${toArchiveName(version, cpu)}.tar.gz`)
  if (existsSync(file)) return file
  buildSharedParts(repository)
  packArchive(repository, { version, cpu, epoch: 0, work, file })
  return file
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}
