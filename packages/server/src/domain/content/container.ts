import { type Doubt, maxUnpackedBytes } from '../ports/engines.ts'
import { isEncryptedInside } from './container-encryption.ts'
import { type ContainerFormat, findContainerFormat } from './container-formats.ts'
import type { Content } from './content.ts'
import { readZipDirectory } from './zip-directory.ts'

export type Container = {
  format: string
  /** The engine sees every member. Otherwise the container must be unpacked, or there is a doubt. */
  engineOpens: boolean
  unpackable: boolean
  /** What is known before anything is unpacked. */
  doubts: Doubt[]
}

/** Stored, imploded, deflated (both), bzip2: found inside by ClamAV. LZMA, xz and PPMd were not. */
const engineMethods = new Set([0, 6, 8, 9, 12])

/** Undefined, at once, for what is no container; otherwise what it takes to see inside. */
export function findContainer(content: Content): Promise<Container> | undefined {
  const format = findContainerFormat(content.head)
  return format && inspectContainer(content, format)
}

async function inspectContainer(content: Content, format: ContainerFormat): Promise<Container> {
  const { name, engineOpens, unpackAs } = format
  const container: Container = { format: name, engineOpens, unpackable: unpackAs !== undefined, doubts: [] }
  if (unpackAs === 'zip') await inspectZip(content, container)
  if (format.encrypted === true || (await isEncryptedInside(content, name))) container.doubts.push('EncryptedContent')
  else if (!engineOpens && unpackAs === undefined) container.doubts.push('UnsupportedContainer')
  return container
}

async function inspectZip(content: Content, container: Container) {
  const zip = await readZipDirectory(content)
  const isReadable = [...zip.methods].every((method) => engineMethods.has(method))
  container.engineOpens = zip.sound && !zip.zip64 && isReadable
  if (zip.encrypted) container.doubts.push('EncryptedContent')
  if (zip.tooLarge || zip.largestBytes > maxUnpackedBytes || zip.totalBytes > maxUnpackedBytes)
    container.doubts.push('ScanLimitExceeded')
}
