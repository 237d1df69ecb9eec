import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  byMke2fs,
  byMkfsExfat,
  byMkfsFat,
  byMkntfs,
  byMksquashfs,
  byQemu,
  fromDirectory,
  newRoot,
  partition,
} from './disk-tools.ts'
import type { Form } from './form.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'
import { run } from './tools.ts'

const diskForm = formsOf({ family: 'disks', needs: [] })

const inZip =
  (build: Build): Build =>
  (payload, workdir) =>
    zipFile(workdir, 'inner.img', build(payload, workdir))

/** The file system alone and in a zip. */
const aloneAndZipped = (builds: Record<string, Build>): Record<string, Build> => ({
  ...builds,
  ...Object.fromEntries(Object.entries(builds).map(([name, build]) => [`${name}.zip`, inZip(build)])),
})

/** Makes a FAT and overwrites bytes of its boot sector. */
const withBootSector =
  (build: Build, at: number, bytes: Buffer): Build =>
  (payload, workdir) => {
    const disk = build(payload, workdir)
    bytes.copy(disk, at)
    return disk
  }

const byMkfsBtrfs = fromDirectory('mkfs.btrfs', (root, image) => [
  '-q',
  '--mixed',
  '-m',
  'single',
  '-d',
  'single',
  '--rootdir',
  root,
  '--shrink',
  image,
])

/** An executable of the machine with a file system behind it, as AppImage has it. */
const behindExecutable: Build = (payload, workdir) => {
  const program = readFileSync('/bin/true')
  const start = Buffer.alloc(65_536)
  program.copy(start)
  return Buffer.concat([start, byMksquashfs()(payload, workdir)])
}

const byGenisoimage =
  (...args: string[]): Build =>
  (payload, workdir) =>
    runAndRead(workdir, 'disc.iso', 'genisoimage', '-quiet', ...args, '-o', 'disc.iso', newRoot(workdir, payload))

/** Two volumes in one file: an ISO 9660 disc with a FAT disk behind its end. */
const discAndDisk: Build = (payload, workdir) => {
  const disk = byMkfsFat(512)(payload, workdir)
  const harmless = join(workdir, 'harmless')
  run('mkdir', [harmless])
  writeFileSync(join(harmless, 'text.txt'), 'A harmless text.')
  const disc = runAndRead(workdir, 'a.iso', 'genisoimage', '-quiet', '-o', 'a.iso', 'harmless')
  return Buffer.concat([disc, disk])
}

const basicData = 'EBD0A0A2-B9E5-4433-87C0-68B6B72699C7'
const fat = ['mtools', 'tsk_recover', 'unzip and mtools']
const virtual = ['qemu-img and mtools', 'unzip, qemu-img and mtools']
const general = ['tsk_recover', 'debugfs', 'unzip and tsk_recover']

/** File systems and disks. */
export const diskForms: Form[] = [
  diskForm(
    'FAT',
    'ambiguous',
    {
      ...aloneAndZipped({
        'fat12.img': byMkfsFat(1024),
        'fat16.img': byMkfsFat(4300, '-F', '16', '-s', '1'),
        'floppy.img': byMkfsFat(1440, '-F', '12'),
        'atari.img': byMkfsFat(1024, '-A'),
        'without-jump.img': withBootSector(byMkfsFat(1024), 0, Buffer.alloc(3)),
        'text-for-jump.img': withBootSector(byMkfsFat(1024), 0, Buffer.from('#!/')),
        'without-parameters.img': withBootSector(byMkfsFat(360, '-F', '12'), 0, Buffer.alloc(512)),
        'three-tables.img': byMkfsFat(1024, '-f', '3'),
        'sectors-of-1024.img': byMkfsFat(1024, '-S', '1024'),
      }),
      'fat32.img.gz': (payload, workdir) => gzipSync(byMkfsFat(34_500, '-F', '32', '-s', '1')(payload, workdir)),
    },
    { needs: ['mkfs.fat', 'mcopy', 'zip'], extractors: [...fat, 'gunzip and mtools'] },
  ),
  diskForm('exFAT', 'ambiguous', aloneAndZipped({ 'exfat.img': byMkfsExfat }), {
    needs: ['mkfs.exfat', 'zip'],
    extractors: general,
  }),
  diskForm(
    'ext2, ext3 and ext4',
    'ambiguous',
    aloneAndZipped({
      'ext2.img': byMke2fs(512, '-t', 'ext2'),
      'ext3.img': byMke2fs(2048, '-t', 'ext3'),
      'ext4.img': byMke2fs(2048, '-t', 'ext4'),
      'inline.img': byMke2fs(512, '-t', 'ext4', '-O', 'inline_data,^has_journal'),
      'blocks-of-4096.img': byMke2fs(1024, '-t', 'ext2', '-b', '4096'),
    }),
    { needs: ['mke2fs', 'zip'], extractors: general },
  ),
  diskForm('btrfs', 'ambiguous', aloneAndZipped({ 'btrfs.img': byMkfsBtrfs }), {
    needs: ['mkfs.btrfs', 'zip'],
    extractors: ['btrfs', 'unzip and btrfs'],
  }),
  diskForm(
    'squashfs',
    'ambiguous',
    {
      ...Object.fromEntries(
        ['gzip', 'xz', 'zstd', 'lz4', 'lzo', 'lzma'].map((name) => [`${name}.squashfs`, byMksquashfs('-comp', name)]),
      ),
      'uncompressed.squashfs': byMksquashfs('-noI', '-noD', '-noF', '-noX'),
      'no-fragments.squashfs': byMksquashfs('-no-fragments'),
      'gzip.squashfs.zip': inZip(byMksquashfs()),
      'behind-executable.AppImage': behindExecutable,
    },
    { needs: ['mksquashfs', 'zip'], extractors: ['unsquashfs', 'unsquashfs at 64 KiB', 'unzip and unsquashfs'] },
  ),
  diskForm(
    'cramfs',
    'ambiguous',
    aloneAndZipped({
      'little.cramfs': fromDirectory('mkfs.cramfs', (root, image) => [root, image]),
      'big.cramfs': fromDirectory('mkfs.cramfs', (root, image) => ['-N', 'big', root, image]),
    }),
    { needs: ['mkfs.cramfs', 'zip'], extractors: ['cramfs', 'unzip and cramfs'] },
  ),
  diskForm(
    'EROFS',
    'ambiguous',
    aloneAndZipped({
      'erofs.img': fromDirectory('mkfs.erofs', (root, image) => ['--quiet', image, root]),
      'lz4.img': fromDirectory('mkfs.erofs', (root, image) => ['--quiet', '-zlz4', image, root]),
    }),
    { needs: ['mkfs.erofs', 'zip'], extractors: ['erofs', 'unzip and erofs'] },
  ),
  diskForm('NTFS', 'ambiguous', aloneAndZipped({ 'ntfs.img': byMkntfs }), {
    needs: ['mkntfs', 'ntfscp', 'zip'],
    extractors: [...general, 'ntfscat'],
  }),
  diskForm(
    'UDF and ISO 9660 with other parts',
    'ambiguous',
    aloneAndZipped({
      'udf.iso': byGenisoimage('-udf'),
      'disk-behind.iso': discAndDisk,
    }),
    { needs: ['genisoimage', 'mkfs.fat', 'mcopy', 'zip'], extractors: ['disk behind a disc'] },
  ),
  diskForm(
    'virtual disk',
    'ambiguous',
    {
      'disk.qcow2': byQemu('qcow2'),
      'compressed.qcow2': byQemu('qcow2', '-c'),
      'older.qcow2': byQemu('qcow2', '-o', 'compat=0.10'),
      'disk.qcow': byQemu('qcow'),
      'disk.vmdk': byQemu('vmdk'),
      'stream.vmdk': byQemu('vmdk', '-o', 'subformat=streamOptimized'),
      'disk.vdi': byQemu('vdi'),
      'disk.vhd': byQemu('vpc'),
      'fixed.vhd': byQemu('vpc', '-o', 'subformat=fixed'),
      'disk.vhdx': byQemu('vhdx', '-o', 'block_size=1M'),
      'disk.qed': byQemu('qed'),
      'disk.hds': byQemu('parallels'),
    },
    { needs: ['qemu-img', 'mkfs.fat', 'mcopy'], extractors: virtual },
  ),
  diskForm(
    'virtual disk in a zip',
    'ambiguous',
    Object.fromEntries(
      ['qcow2', 'qcow', 'vmdk', 'vdi', 'vpc', 'vhdx', 'qed', 'parallels'].map((format) => [
        `${format}.zip`,
        inZip(byQemu(format)),
      ]),
    ),
    { needs: ['qemu-img', 'mkfs.fat', 'mcopy', 'zip'], extractors: virtual },
  ),
  diskForm(
    'disk with partitions',
    'ambiguous',
    {
      'dos.img': partition('dos', 'c', byMkfsFat(1024)),
      'gpt.img': partition('gpt', basicData, byMkfsFat(1024)),
      'dos-ext4.img': partition('dos', '83', byMke2fs(512, '-t', 'ext2')),
      'gpt-ntfs.img': partition('gpt', basicData, byMkntfs),
      'gpt.img.zip': inZip(partition('gpt', basicData, byMkfsFat(1024))),
    },
    { needs: ['sfdisk', 'mkfs.fat', 'mcopy', 'mke2fs', 'mkntfs', 'zip'], extractors: ['partition'] },
  ),
]
