import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { buildImage, type Container, findImageSize, imageName, runImage } from './packaged-image.ts'
import { checkSchemas } from './packaged-schemas.ts'
import { bootWithUnit } from './packaged-unit.ts'
import { requirePrograms } from './required-programs.ts'

/**
 * `npm run check:packaging` tries the packaging as far as this machine can, which takes minutes. `-- schemas`,
 * `-- image` and `-- unit` run one part. Needs root; a part whose programs are missing says so and fails.
 */
const { positionals } = parseArgs({ allowPositionals: true })
const repository = new URL('../', import.meta.url).pathname
const key = 'assay_key_for_the_check_of_packages'
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}', '$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('')
const readyTimeoutMs = 120_000
const work = mkdtempSync(join(tmpdir(), 'assay-packaging-'))

const parts = { schemas: trySchemas, image: tryImage, unit: tryUnit }
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
      const container = runImage({ volume, port, key, like })
      try {
        await expectScans(container)
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

async function tryUnit() {
  requirePrograms('debootstrap', 'systemd-nspawn', 'podman')
  if (spawnSync('podman', ['image', 'exists', imageName]).status !== 0) buildImage(repository)
  const settings = {
    ASSAY_BOOTSTRAP_KEY: key,
    ASSAY_SIGNATURE_HOURS: '0',
    ASSAY_SIGNATURE_MAX_AGE: 'off',
    ASSAY_SANDBOX: 'required',
  }
  const booted = await bootWithUnit(repository, imageName, settings)
  try {
    const curl = ['curl', '-sS', '-H', `X-API-Key: ${key}`]
    const scan = (body: string, path: string) =>
      JSON.parse(
        booted.run(
          'sh',
          '-c',
          `${body} | ${curl.map((word) => `'${word}'`).join(' ')} -F file=@- http://127.0.0.1:8080${path}`,
        ),
      )
    const expectThreat = () => {
      const { status } = scan(
        `printf '%s%s' 'X5O!P%@AP[4\\PZX54(P^)7CC)7}' '${eicar.slice(27)}'`,
        '/v1/malware/scan/file',
      )
      assert.equal(status, 'threat')
    }
    // systemd reports the unit as active when the service is ready, so that no wait is needed.
    booted.run('systemctl', 'start', 'assay')
    expectThreat()
    assert.doesNotMatch(
      booted.run('journalctl', '--unit=assay', '--no-pager'),
      /no private sandbox|cut off from the network/,
    )
    booted.run('systemctl', 'restart', 'assay')
    expectThreat()
    booted.run('systemctl', 'kill', '--signal=KILL', '--kill-who=main', 'assay')
    await waitUntil(() =>
      booted.run('systemctl', 'show', 'assay', '--property=NRestarts,ActiveState').includes('=active'),
    )
    expectThreat()
    booted.run('systemctl', 'stop', 'assay')
    print('unit: ready when active, EICAR found, ClamAV has a space of its own; restarted, killed and stopped')
  } catch (error) {
    print(booted.run('journalctl', '--unit=assay', '--no-pager', '--lines=30'))
    throw error
  } finally {
    await booted.close()
  }
}

async function expectScans({ url }: Container) {
  await waitUntil(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true)
  const { status, reasons } = (await (await fetch(`${url}/readyz`)).json()) as { status: string; reasons: string[] }
  assert.equal(status, 'ready', reasons.join(' '))
  const send = async (path: string, content: Uint8Array<ArrayBuffer>) => {
    const body = new FormData()
    body.set('file', new Blob([content]), 'file')
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers: { 'X-API-Key': key }, body })
    return (await answer.json()) as { status: string; metadata: Record<string, string> }
  }
  assert.equal((await send('/v1/malware/scan/file', new TextEncoder().encode(eicar))).status, 'threat')
  const picture = new Uint8Array(readFileSync(join(repository, 'acceptance/support/pictures/colours.jpg')))
  const scored = await send('/v1/nsfw/images/scan/file', picture)
  assert.match(scored.metadata.engine_versions ?? '', /^nsfwjs /)
  // Content over 1 MB goes through the encrypted spool and ClamAV's scratch.
  const large = await send('/v1/malware/scan/file', new Uint8Array(40_000_000).fill(7))
  assert.equal(large.status, 'clean')
}

async function waitUntil(condition: () => boolean | Promise<boolean>) {
  const deadline = performance.now() + readyTimeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`The condition was not met within ${readyTimeoutMs / 1000} s.`)
    await sleep(200)
  }
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}
