import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type DebianPackage, unpackDebian } from './debian-packages.ts'
import { architectures, type Cpu } from './installation.ts'
import { hashFile, pack } from './pack.ts'

export const toImageFile = (version: string) => `assay-${version}-image.tar`

type Descriptor = { mediaType: string; digest: string; size: number }
type Layer = { blob: Descriptor; diffId: string; bytes: number }
type BuiltImage = { descriptor: Descriptor; bytes: number; packages: DebianPackage[] }

const media = (name: string) => `application/vnd.oci.image.${name}`
/**
 * How GNU tar changes the permissions of Debian's files. No program may change its user: the container has no right to,
 * and nothing in it needs to. Directories that all users may write, such as /tmp, stay so.
 */
export const systemMode = 'ug-s,go+X'
/** Machine numbers in the heads of programs. */
const elfMachines: Record<Cpu, number> = { x64: 62, arm64: 183 }

/** Reads from the Dockerfile the packages of Debian in the image and how it is started. */
export function readDockerfile(text: string) {
  const stage = text.slice(text.lastIndexOf('\nFROM ')).replaceAll(/ *\\\n\s*/g, ' ')
  const find = (name: string) => {
    const value = new RegExp(`^${name} (.*)$`, 'm').exec(stage)?.[1]
    if (value === undefined) throw new Error(`The last stage of the Dockerfile has no ${name}.`)
    return value
  }
  const list = (name: string) => JSON.parse(find(name)) as string[]
  const [, packages = ''] = /apt-get install -y --no-install-recommends ([\w. +-]+?) &&/.exec(stage) ?? []
  if (packages === '') throw new Error('The last stage of the Dockerfile installs no packages.')
  const [, options = '', health = ''] = /^(.*) CMD (\[.*\])$/.exec(find('HEALTHCHECK')) ?? []
  const option = (name: string) => Number(new RegExp(`--${name}=(\\d+)`).exec(options)?.[1])
  const seconds = (name: string) => option(name) * 1e9
  return {
    packages: packages.split(' '),
    config: {
      User: find('USER'),
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...find('ENV').split(/\s+/)],
      Entrypoint: list('ENTRYPOINT'),
      Cmd: list('CMD'),
      WorkingDir: find('WORKDIR'),
      Volumes: { [find('VOLUME')]: {} },
      ExposedPorts: { [`${find('EXPOSE')}/tcp`]: {} },
      // Docker reads this member, which the specification of OCI does not have.
      Healthcheck: {
        Test: ['CMD', ...(JSON.parse(health) as string[])],
        Interval: seconds('interval'),
        Timeout: seconds('timeout'),
        StartPeriod: seconds('start-period'),
        Retries: option('retries'),
      },
    },
  }
}

type ImageBuild = { repository: string; installation: string; layout: string; cpu: Cpu; epoch: number; work: string }

/**
 * Adds the image of one processor to an OCI layout: Debian's packages, the installation, and the directory for data.
 * The installation is moved.
 */
export function addImage({ repository, installation, layout, cpu, epoch, work }: ImageBuild): BuiltImage {
  const { packages: names, config } = readDockerfile(readFileSync(join(repository, 'Dockerfile'), 'utf8'))
  const debian = join(work, `debian-${cpu}`)
  const packages = unpackDebian(debian, architectures[cpu], names, work)
  const assay = join(work, `assay-${cpu}`)
  const bin = join(assay, 'usr/local/bin')
  mkdirSync(bin, { recursive: true })
  mkdirSync(join(assay, 'opt'))
  renameSync(installation, join(assay, 'opt/assay'))
  symlinkSync('/opt/assay/packaging/assay', join(bin, 'assay'))
  symlinkSync('/opt/assay/node_modules/.bin/node', join(bin, 'node'))
  for (const dir of [debian, assay]) expectMachine(dir, elfMachines[cpu])
  const data = join(work, `data-${cpu}`)
  mkdirSync(join(data, 'var/lib/assay'), { recursive: true })
  const layers = [
    addLayer(layout, { dir: debian, names: readdirSync(debian), mode: systemMode, epoch, work }),
    addLayer(layout, { dir: assay, names: ['opt', 'usr'], epoch, work }),
    addLayer(layout, { dir: data, names: ['var/lib/assay'], mode: 'u=rwx,go=x', owner: 10001, epoch, work }),
  ]
  for (const dir of [debian, assay, data]) rmSync(dir, { recursive: true })
  const created = new Date(epoch * 1000).toISOString()
  const image = {
    created,
    architecture: architectures[cpu],
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: ['packages of Debian 12', 'Assay', 'data directory'].map((comment) => ({ created, comment })),
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: media('manifest.v1+json'),
    config: addJson(layout, media('config.v1+json'), image),
    layers: layers.map(({ blob }) => blob),
  }
  const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0)
  const descriptor = addJson(layout, manifest.mediaType, manifest)
  return { descriptor, bytes, packages }
}

/** Writes the index of both processors, under the name of the version, and packs the layout. */
export function packLayout(
  layout: string,
  { images, version, file, epoch }: { images: Record<Cpu, Descriptor>; version: string; file: string; epoch: number },
) {
  const manifests = Object.entries(images).map(([cpu, descriptor]) => ({
    ...descriptor,
    platform: { architecture: architectures[cpu as Cpu], os: 'linux', ...(cpu === 'arm64' && { variant: 'v8' }) },
  }))
  const mediaType = media('index.v1+json')
  const index = addJson(layout, mediaType, { schemaVersion: 2, mediaType, manifests })
  const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': version } }
  writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType, manifests: [named] }))
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  pack({ dir: layout, names: ['blobs', 'index.json', 'oci-layout'], file, epoch, isCompressed: false })
}

type LayerSource = { dir: string; names: string[]; mode?: string; owner?: number; epoch: number; work: string }

function addLayer(layout: string, { work, ...source }: LayerSource): Layer {
  const file = join(work, 'layer.tar')
  pack({ ...source, file, isCompressed: false })
  const [diffId, bytes] = [`sha256:${hashFile(file)}`, statSync(file).size]
  execFileSync('gzip', ['-n', '-6', '--force', file])
  const packed = `${file}.gz`
  const hash = hashFile(packed)
  const blob = { mediaType: media('layer.v1.tar+gzip'), digest: `sha256:${hash}`, size: statSync(packed).size }
  renameSync(packed, toBlobPath(layout, hash))
  return { blob, diffId, bytes }
}

function addJson(layout: string, mediaType: string, value: object): Descriptor {
  const text = JSON.stringify(value)
  const hash = createHash('sha256').update(text).digest('hex')
  writeFileSync(toBlobPath(layout, hash), text)
  return { mediaType, digest: `sha256:${hash}`, size: Buffer.byteLength(text) }
}

function toBlobPath(layout: string, hash: string): string {
  const path = join(layout, 'blobs/sha256', hash)
  mkdirSync(dirname(path), { recursive: true })
  return path
}

/** Throws if a program or library below a directory is for another processor. */
function expectMachine(dir: string, machine: number) {
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || statSync(path).size < 64 || !/\.node$|\.so(?:\.|$)|bin\/[^/]*$/.test(path)) continue
    const head = readFileSync(path).subarray(0, 20)
    if (head.toString('latin1', 0, 4) === '\x7fELF' && head.readUInt16LE(18) !== machine)
      throw new Error(`${path} is for another processor.`)
  }
}
