import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findKnownDoubts } from '../../src/domain/content/container.ts'
import { findContainerFormat, listContainerFormats } from '../../src/domain/content/container-formats.ts'
import { headBytes } from '../../src/domain/content/content.ts'
import { newContent } from '../engines/unpack-archives.ts'

type Part = [at: number, bytes: string | number[]]

function newHead(...parts: Part[]): Buffer {
  const head = Buffer.alloc(headBytes)
  for (const [at, bytes] of parts)
    (typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : Buffer.from(bytes)).copy(head, at)
  return head
}

/** The parameters of a floppy disk, without the name of the format and without the mark of a boot sector. */
const fat: Part = [0, [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 0, 2, 0xe0, 0, 0x40, 0x0b, 0xf0, 9, 0]]
const iso: Part = [32_769, 'CD001']

/** Heads as mkfs.btrfs, mkfs.xfs, mkfs.f2fs, mkreiserfs, mkfs.minix, hformat, qemu-img and others write them. */
const unopened: [name: string, head: Buffer][] = [
  ['exfat', newHead([3, 'EXFAT   '])],
  ['btrfs', newHead([65_600, '_BHRfS_M'])],
  ['xfs', newHead([0, 'XFSB\x00\x00\x10\x00'])],
  ['f2fs', newHead([1024, [0x10, 0x20, 0xf5, 0xf2]])],
  ['erofs', newHead([1024, [0xe2, 0xe1, 0xf5, 0xe0]])],
  ['reiserfs', newHead([65_588, 'ReIsEr2Fs'])],
  ['jfs', newHead([32_768, 'JFS1'])],
  ['nilfs', newHead([1024, [2, 0, 0, 0, 0, 0, 0x34, 0x34, 0x18, 1]])],
  ['ufs', newHead([9564, [0x54, 0x19, 1, 0]])],
  ['ufs', newHead([66_908, [0x19, 1, 0x54, 0x19]])],
  ['minix', newHead([1024, [0xc0, 2, 0, 8, 1, 0, 1, 0, 0x1a, 0, 0, 0, 0, 0x1c, 8, 0x10, 0x8f, 0x13, 1, 0]])],
  ['minix', newHead([1024, [0xb0, 2]], [1044, [0, 8]], [1048, [0x5a, 0x4d, 0, 0, 0, 4]])],
  ['hfs', newHead([1024, 'BD'], [1042, [0x1f, 0xf9, 0, 0, 2, 0]])],
  ['zfs', newHead([16_384, [1, 1]], [16_408, 'version\x00'])],
  ['lvm', newHead([512, 'LABELONE'])],
  ['linux-raid', newHead([4096, [0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]])],
  ['qed', newHead([0, 'QED\x00'])],
  ['parallels', newHead([0, 'WithouFreSpacExt'])],
  ['vmdk-descriptor', newHead([0, '# Disk DescriptorFile\nversion=1\n'])],
  ['vmdk-cowd', newHead([0, 'COWD\x01\x00\x00\x00'])],
  ['raw-disc', newHead([0, [0, ...Array<number>(10).fill(255), 0]])],
  ['romfs', newHead([0, '-rom1fs-'])],
  // Floppy disks of DOS 1: boot sector, allocation table, its copy, directory.
  [
    'old-fat',
    newHead([512, [0xfe, 255, 255]], [1024, [0xfe, 255, 255]], [1536, 'PAYLOAD COM\x20'], [1562, [2, 0, 68]]),
  ],
  ['old-fat', newHead([512, [0xfd, 255, 255]], [1536, [0xfd, 255, 255]], [2560, 'A          \x08'])],
  ['lzfse', newHead([0, 'bvx2'])],
  ['pst', newHead([0, '!BDN\x00\x00\x00\x00SM'])],
]

test('images that nothing opens are never called clean', async () => {
  for (const [name, head] of unopened) {
    assert.equal(findContainerFormat(head)?.name, name)
    assert.deepEqual(await findKnownDoubts(newContent(head)), ['UnsupportedContainer'], name)
  }
})

test('a FAT is known by its parameters, without a name', () => {
  assert.equal(findContainerFormat(newHead(fat))?.name, 'fat')
  assert.equal(findContainerFormat(newHead(fat, [16, [9]])), undefined)
  assert.equal(findContainerFormat(newHead([0, [0xeb, 0x3c, 0x90]], [510, [0x55, 0xaa]])), undefined)
  for (const jump of ['\x60\x1c', '\x00\x00', '#!'])
    assert.equal(findContainerFormat(newHead(fat, [0, jump]))?.name, 'fat', jump)
  const parameters: [sectorBytes: number[], expected: string | undefined][] = [
    [[0x80, 0], 'fat'],
    [[0, 16], 'fat'],
    [[0, 3], undefined],
    [[0, 32], undefined],
  ]
  for (const [bytes, expected] of parameters)
    assert.equal(findContainerFormat(newHead(fat, [11, bytes]))?.name, expected, bytes.join())
})

test('a floppy disk with parameters is read by them alone', () => {
  const table: Part = [512, [0xf0, 255, 255]]
  const formats = listContainerFormats(newHead(fat, table, [9728, 'PAYLOAD COM\x20']))
  assert.deepEqual(
    formats.map(({ name }) => name),
    ['fat'],
  )
})

test('content that is several images at once is read as each of them', async () => {
  const both = newHead(fat, iso)
  assert.deepEqual(
    listContainerFormats(both).map((format) => format.name),
    ['iso', 'fat'],
  )
  assert.deepEqual(await findKnownDoubts(newContent(both)), [])
  assert.deepEqual(await findKnownDoubts(newContent(newHead(iso, [1024, [0x10, 0x20, 0xf5, 0xf2]]))), [
    'UnsupportedContainer',
  ])
})

test('words and numbers at the place of a signature are no image', () => {
  const others = [
    newHead([0, 'XFSBody of a text']),
    newHead([1024, 'BD in the middle of a text']),
    newHead([1030, '44 is a number']),
    newHead([1040, [0x7f, 0x13]]),
    newHead([0, 'UHAUL']),
    newHead([0, '!BDN is no mail']),
    newHead([11, [0, 2]], [21, [0xf8]]),
    Buffer.alloc(headBytes, 255),
    newHead([512, [255, 255, 255]]),
  ]
  for (const head of others) assert.equal(findContainerFormat(head), undefined, head.toString('latin1', 0, 16))
})
