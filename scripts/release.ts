import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { runImage } from './packaged-image.ts'
import { checkDocuments } from './packaged-schemas.ts'
import { packArchive, startArchive, toArchiveName } from './release/archive.ts'
import { chartTrials, findChartRenderer, packChart, renderChart, toChartName, unpackChart } from './release/chart.ts'
import { addImage, packLayout, toImageFile } from './release/image.ts'
import { architectures, buildSharedParts, type Cpu, findGlibc, writeChecksums } from './release/installation.ts'
import { extractNotes } from './release/notes.ts'
import {
  installPackages,
  packPackages,
  publishedPackages,
  scanWithPackages,
  toTarballName,
} from './release/npm-packages.ts'
import { hashFile } from './release/pack.ts'
import {
  findObstacles,
  isInstalled,
  listPublishSteps,
  publish,
  publishingPrograms,
  takeSecrets,
} from './release/publish.ts'
import { listRequirements, type Part } from './release/requirements.ts'
import { writeImageSbom } from './release/sbom.ts'
import { eicar, expectConsole, expectScans, fetchText, key } from './release/try-service.ts'
import { exitUnlessPossible } from './required-programs.ts'

/**
 * `npm run release -- --dry-run` builds all parts of a release into dist/, checks them, and prints a table. Names of
 * parts (`npm`, `chart`, `archive`, `image`) build these alone. See docs/releasing.md.
 */
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'dry-run': { type: 'boolean', default: false } },
})
const repository = fileURLToPath(new URL('../', import.meta.url))
// Files that are written into an image must be readable to its user, whatever the umask of the builder.
process.umask(0o022)
const dist = join(repository, 'dist')
const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
/** The largest archive, and the largest image of one processor, that a release may have. */
const maxArchiveMegabytes = 350
const maxImageMegabytes = 700
/** glibc that the launcher asks for. */
const glibc = '2.28'

type Row = { artefact: string; megabytes: number; seconds: number; check: string }
const rows: Row[] = []
const parts: Record<Part, () => Promise<void>> = {
  npm: releasePackages,
  chart: releaseChart,
  archive: releaseArchives,
  image: releaseImage,
}
const partNames = Object.keys(parts) as Part[]
const wanted = (name: Part) => positionals.length === 0 || positionals.includes(name)
/** Assembled installations, which become archives and images. */
const installations: Partial<Record<Cpu, string>> = {}

exitUnlessPossible(listRequirements(partNames.filter(wanted)))
const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).trim()
// Every file of a release has the time of its commit, so that a second build has the same bytes.
const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'))
const { text: notes, date } = extractNotes(readFileSync(join(repository, 'CHANGELOG.md'), 'utf8'), version)
if (!options['dry-run']) refuseUnlessPossible()
// The build runs programs of many authors, which must not see what could publish in our name.
const secrets = takeSecrets(process.env)
const work = mkdtempSync(join(tmpdir(), 'assay-release-'))
rmSync(dist, { recursive: true, force: true })
mkdirSync(dist)
try {
  writeFileSync(join(dist, 'release-notes.md'), notes)
  for (const name of partNames.filter(wanted)) await parts[name]()
  writeChecksums(dist, hashFile)
  execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: dist, stdio: 'inherit' })
  printTable()
  if (positionals.length === 0) finish()
} finally {
  rmSync(work, { recursive: true, force: true })
}

/** Ends before anything is built when it could not be published. */
function refuseUnlessPossible() {
  const obstacles = findObstacles({
    version,
    date,
    isClean: git('status', '--porcelain') === '',
    tags: git('tag', '--points-at', 'HEAD').split('\n'),
    env: process.env,
    missingPrograms: publishingPrograms.filter((name) => !isInstalled(name)),
  })
  if (positionals.length > 0) obstacles.push('A release has all parts: name none, or add --dry-run.')
  if (obstacles.length === 0) return
  process.stderr.write(`Nothing is released:\n${obstacles.map((line) => `- ${line}\n`).join('')}`)
  process.exit(1)
}

/** Publishes what was built, or prints the commands that would. */
function finish() {
  const steps = listPublishSteps(dist, version, process.env.RELEASE_IMAGE ?? 'RELEASE_IMAGE')
  if (!options['dry-run']) return publish(steps, secrets)
  const lines = steps.map(({ command }) => `  ${command.join(' ').replaceAll(dist, 'dist')}\n`)
  process.stdout.write(`\nA release would run:\n${lines.join('')}`)
}

async function releasePackages() {
  const startedAt = performance.now()
  const again = makeDir('npm-again')
  packPackages(repository, dist, makeDir('npm'))
  packPackages(repository, again, makeDir('npm-second'))
  const names = publishedPackages.map((name) => toTarballName(name, version))
  for (const name of names) expectSame(join(dist, name), join(again, name))
  for (const name of names) note(name, startedAt, 'built twice, same bytes')
}

async function releaseChart() {
  const startedAt = performance.now()
  const name = toChartName(version)
  const again = join(makeDir('chart-again'), name)
  packChart(repository, { file: join(dist, name), epoch, work: makeDir('chart') })
  packChart(repository, { file: again, epoch, work: makeDir('chart-second') })
  expectSame(join(dist, name), again)
  const program = findChartRenderer()
  const dir = unpackChart(join(dist, name), makeDir('chart-unpacked'))
  const manifests = Object.entries(chartTrials).flatMap(([trial, values]) =>
    renderChart(dir, values, work).map((document) => ({ file: `chart with values "${trial}"`, document })),
  )
  assert.deepEqual(checkDocuments({ manifests }), [])
  const trials = Object.keys(chartTrials).length
  const done = `${manifests.length} objects of ${trials} sets of values rendered by ${program}, against their schemas`
  note(name, startedAt, `built twice, same bytes; ${done}`)
}

async function releaseArchives() {
  buildSharedParts(repository)
  for (const cpu of Object.keys(architectures) as Cpu[]) {
    const startedAt = performance.now()
    const name = toArchiveName(version, cpu)
    const file = join(dist, `${name}.tar.gz`)
    const build = { version, cpu, epoch, work }
    const dir = packArchive(repository, { ...build, file })
    const second = makeDir(`again-${cpu}`)
    const again = join(second, 'archive')
    // Compared unpacked, because compressing the same bytes again gives the same bytes and takes long.
    const options = { work: second, file: again, modulesFrom: dir, isCompressed: false }
    rmSync(packArchive(repository, { ...build, ...options }), { recursive: true })
    const unpacked = execFileSync('sh', ['-c', 'gzip -dc "$1" | sha256sum', 'sh', file], { encoding: 'utf8' })
    assert.equal(unpacked.split(' ')[0], hashFile(again), `${file} has other bytes when it is built again`)
    assert.equal(findGlibc(dir), glibc, 'packaging/assay names another glibc than the programs need')
    cpSync(join(dir, 'sbom.cdx.json'), join(dist, `${name}.cdx.json`))
    rmSync(again)
    installations[cpu] = dir
    const done = ['packed twice, same bytes', `glibc ${glibc}`]
    if (process.arch === cpu) done.push(await tryArchive(file, name))
    else done.push(`not started: this machine is not an ${cpu}`)
    expectSize(file, maxArchiveMegabytes)
    note(`${name}.tar.gz`, startedAt, done.join('; '))
    note(`${name}.cdx.json`, performance.now(), `${countComponents(`${name}.cdx.json`)} components`)
  }
}

/** Assembles the images of both processors, and runs that of this machine. */
async function releaseImage() {
  if (installations.x64 === undefined) await releaseArchives()
  const startedAt = performance.now()
  const layout = makeDir('layout')
  const add = (cpu: Cpu) => {
    const installation = installations[cpu] ?? ''
    const name = `assay-${version}-image-${architectures[cpu]}.cdx.json`
    const sbom = join(installation, 'sbom.cdx.json')
    const list = join(work, `sbom-${cpu}`)
    cpSync(sbom, list)
    const image = addImage({ repository, installation, layout, cpu, epoch, work })
    writeImageSbom(list, join(dist, name), image.packages, epoch)
    note(name, performance.now(), `${countComponents(name)} components, ${image.packages.length} of them of Debian`)
    const megabytes = Math.round(image.bytes / 1e6)
    assert(megabytes < maxImageMegabytes, `The image for ${cpu} is larger than ${maxImageMegabytes} MB`)
    return { descriptor: image.descriptor, done: `${architectures[cpu]} ${megabytes} MB unpacked` }
  }
  const [x64, arm64] = [add('x64'), add('arm64')]
  const file = join(dist, toImageFile(version))
  packLayout(layout, { images: { x64: x64.descriptor, arm64: arm64.descriptor }, version, file, epoch })
  const tried = await tryImage(file)
  note(toImageFile(version), startedAt, [x64.done, arm64.done, tried].join('; '))
}

/** Runs the image for this machine as compose.yaml does, with the limits of Docker. */
async function tryImage(file: string): Promise<string> {
  const image = 'localhost/assay:release'
  execFileSync('skopeo', ['copy', '--quiet', `oci-archive:${file}:${version}`, `containers-storage:${image}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const volume = `assay-release-${process.pid}`
  const container = runImage({ image, volume, port: await findFreePort(), like: 'docker' })
  try {
    await expectScans(repository, container.url)
    await expectConsole((path) => fetchText(container.url + path))
    container.podman('exec', '@', 'assay', 'health')
    container.podman('exec', '@', 'sh', '-c', 'echo text >/tmp/file')
    container.podman('stop', '--time', '60', '@')
    return `${architectures[process.arch as Cpu]} run without root and rights: EICAR found, a picture scored, console served`
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${container.readLog()}`, { cause: error })
  } finally {
    container.close()
    execFileSync('podman', ['volume', 'rm', '--force', volume], { stdio: 'ignore' })
    execFileSync('podman', ['rmi', '--force', image], { stdio: 'ignore' })
  }
}

/** Starts the archive and scans with it, directly and with the packed npm packages. */
async function tryArchive(file: string, name: string): Promise<string> {
  const service = await startArchive(file, name, makeDir('started'))
  try {
    await expectScans(repository, service.url)
    const files = await expectConsole((path) => fetchText(service.url + path))
    const done = `./assay serve: EICAR found, a picture scored, the console has ${files} files`
    if (!wanted('npm')) return done
    const installed = installPackages(dist, version, makeDir('installed'))
    const verdicts = scanWithPackages(installed, { url: service.url, key }, eicar)
    assert.equal(verdicts.client, 'threat')
    assert.match(verdicts.cli, /FOUND$/)
    for (const row of rows.filter(({ artefact }) => /^assay-cli/.test(artefact)))
      row.check += '; installed alone and offline, EICAR found'
    return done
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${service.readOutput()}`, { cause: error })
  } finally {
    await service.stop()
  }
}

function countComponents(name: string): number {
  return (JSON.parse(readFileSync(join(dist, name), 'utf8')) as { components: unknown[] }).components.length
}

function expectSame(one: string, other: string) {
  assert.equal(hashFile(one), hashFile(other), `${one} has other bytes when it is built again`)
}

function expectSize(file: string, maxMegabytes: number) {
  assert(toMegabytes(file) < maxMegabytes, `${file} is larger than ${maxMegabytes} MB`)
}

function toMegabytes(file: string): number {
  return statSync(file).size / 1e6
}

function makeDir(name: string): string {
  const dir = join(work, name)
  mkdirSync(dir)
  return dir
}

function note(artefact: string, startedAt: number, check: string) {
  const seconds = (performance.now() - startedAt) / 1000
  rows.push({ artefact, megabytes: toMegabytes(join(dist, artefact)), seconds, check })
  process.stdout.write(`${artefact}: ${check}\n`)
}

function printTable() {
  const lines = rows.map(({ artefact, megabytes, seconds, check }) => [
    artefact,
    `${megabytes.toFixed(megabytes < 10 ? 3 : 0)} MB`,
    `${seconds.toFixed(0)} s`,
    check,
  ])
  const widths = [0, 1, 2, 3].map((i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)))
  const toLine = (line: string[]) => `| ${line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |\n`
  process.stdout.write(`\n${lines.map(toLine).join('')}`)
}
