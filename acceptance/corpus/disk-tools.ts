import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Build, runAndRead } from './samples.ts'
import { run } from './tools.ts'

const kilobyte = 1024

/** Makes a file of zeros and returns its name. */
function newImage(workdir: string, kilobytes: number): string {
  writeFileSync(join(workdir, 'disk.img'), '')
  truncateSync(join(workdir, 'disk.img'), kilobytes * kilobyte)
  return 'disk.img'
}

/** Makes a directory that holds the payload alone, and returns its name. */
export function newRoot(workdir: string, payload: Buffer): string {
  mkdirSync(join(workdir, 'root'))
  writeFileSync(join(workdir, 'root', 'payload.com'), payload)
  return 'root'
}

/** Makes a FAT file system that holds the payload. */
export const byMkfsFat =
  (kilobytes: number, ...args: string[]): Build =>
  (_payload, workdir) => {
    const image = newImage(workdir, kilobytes)
    run('mkfs.fat', ['-i', '12345678', ...args, image], { cwd: workdir })
    return runAndRead(workdir, image, 'mcopy', '-i', image, 'payload.com', '::')
  }

/** Makes a file system from a directory: `args` are put before the image or behind it, as the program wants them. */
export const fromDirectory =
  (program: string, listArgs: (root: string, image: string) => string[], kilobytes?: number): Build =>
  (payload, workdir) => {
    const image = kilobytes === undefined ? 'disk.img' : newImage(workdir, kilobytes)
    return runAndRead(workdir, image, program, ...listArgs(newRoot(workdir, payload), image))
  }

export const byMke2fs = (kilobytes: number, ...args: string[]): Build =>
  fromDirectory('mke2fs', (root, image) => ['-q', '-F', ...args, '-d', root, image], kilobytes)

export const byMksquashfs = (...args: string[]): Build =>
  fromDirectory('mksquashfs', (root, image) => [root, image, '-noappend', '-quiet', '-all-root', ...args])

export const byMkntfs: Build = (_payload, workdir) => {
  const image = newImage(workdir, 2048)
  run('mkntfs', ['-F', '-Q', '-q', '-c', '512', image], { cwd: workdir })
  return runAndRead(workdir, image, 'ntfscp', '-f', image, 'payload.com', 'payload.com')
}

/** Makes an exFAT file system, and writes the entries of one file, because Debian has no program that does it unmounted. */
export const byMkfsExfat: Build = (payload, workdir) => {
  const image = newImage(workdir, 2048)
  const disk = runAndRead(workdir, image, 'mkfs.exfat', '-c', '4K', '-b', '4K', image)
  const sector = 2 ** disk.readUInt8(108)
  const cluster = sector * 2 ** disk.readUInt8(109)
  const rootCluster = disk.readUInt32LE(96)
  const place = (number: number) => disk.readUInt32LE(88) * sector + (number - 2) * cluster
  const name = Buffer.from('payload.com', 'utf16le')
  const entries = Buffer.alloc(96)
  entries.set([0x85, 2, 0, 0, 0x20], 0)
  for (const time of [8, 12, 16]) entries.writeUInt32LE(0x5821_0000, time)
  entries.set([0xc0, 3, 0, name.length / 2], 32)
  entries.writeBigUInt64LE(BigInt(payload.length), 40)
  entries.writeUInt32LE(rootCluster + 1, 52)
  entries.writeBigUInt64LE(BigInt(payload.length), 56)
  entries.set([0xc1, 0], 64)
  name.copy(entries, 66)
  let sum = 0
  for (const [n, byte] of entries.entries())
    if (n !== 2 && n !== 3) sum = (((sum & 1) << 15) + (sum >> 1) + byte) & 0xffff
  entries.writeUInt16LE(sum, 2)
  let free = place(rootCluster)
  while (disk[free] !== 0) free += 32
  entries.copy(disk, free)
  // The bitmap of clusters in use is the first cluster.
  disk[place(2)] = (disk[place(2)] ?? 0) | (1 << (rootCluster - 1))
  payload.copy(disk, place(rootCluster + 1))
  return disk
}

/** Converts a small FAT disk to a format of virtual disks. */
export const byQemu =
  (format: string, ...args: string[]): Build =>
  (payload, workdir) => {
    writeFileSync(join(workdir, 'raw.img'), byMkfsFat(1024)(payload, workdir))
    return runAndRead(workdir, 'out', 'qemu-img', 'convert', '-f', 'raw', '-O', format, ...args, 'raw.img', 'out')
  }

/** Puts a file system into a partition that begins at 1 MiB. */
export const partition =
  (label: string, type: string, build: Build): Build =>
  (payload, workdir) => {
    const fileSystem = build(payload, workdir)
    const gap = Buffer.alloc(kilobyte * kilobyte)
    writeFileSync(join(workdir, 'whole.img'), Buffer.concat([gap, fileSystem, gap]))
    const script = `label: ${label}\nstart=2048, size=${Math.ceil(fileSystem.length / 512)}, type=${type}\n`
    run('sfdisk', ['-q', 'whole.img'], { cwd: workdir, input: Buffer.from(script) })
    return readFileSync(join(workdir, 'whole.img'))
  }
