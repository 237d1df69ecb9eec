import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { openUnpacker } from '../../src/engines/unpack/open-unpacker.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import {
  eicar,
  member,
  newContent,
  newRar4,
  newRar5,
  newTar,
  newZip,
  unpackAll,
  writeArchive,
} from './unpack-archives.ts'

const log = makeLogger({ level: 'silent', region: 'test' })
const unpacker = openUnpacker({ log })
after(() => unpacker.close())

const unpack = (archive: Buffer, options = {}) => unpackAll(unpacker, archive, options)

describe('a member is given whole out of a container that ClamAV calls OK', () => {
  const forms: [string, () => Buffer | Promise<Buffer>, path?: string][] = [
    ['ZIP64', () => newZip([{ wide: true }], { end64: true })],
    ['zip with LZMA', () => writeArchive(['-tzip', '-mm=LZMA'])],
    ['zip with PPMd', () => writeArchive(['-tzip', '-mm=PPMd'])],
    ['7z with BZip2', () => writeArchive(['-t7z', '-m0=BZip2'])],
    ['7z with Deflate', () => writeArchive(['-t7z', '-m0=Deflate'])],
    ['7z with Delta and LZMA', () => writeArchive(['-t7z', '-m0=Delta:4', '-m1=LZMA'])],
    ['WIM', () => writeArchive(['-twim'])],
    ['RAR 4', () => newRar4()],
    ['RAR 5', () => newRar5()],
    ['zstd', () => zstdCompressSync(member), ''],
    ['bzip2 in two streams', newTwoStreams, ''],
  ]
  for (const [name, make, path = 'eicar.com'] of forms) {
    test(name, async () => {
      const { given, doubts } = await unpack(await make())
      assert.deepEqual(doubts, [])
      assert.equal(given.length, 1)
      assert.ok(given[0]?.bytes.equals(member))
      assert.equal(given[0]?.path, path)
    })
  }

  test('tar.zst, in the two steps that the caller takes', async () => {
    const outer = await unpack(zstdCompressSync(newTar(['folder/eicar.com'])))
    const inner = await unpack(outer.given[0]?.bytes ?? Buffer.alloc(0))
    assert.deepEqual([...outer.doubts, ...inner.doubts], [])
    assert.deepEqual(
      inner.given.map(({ path }) => path),
      ['folder/eicar.com'],
    )
    assert.ok(inner.given[0]?.bytes.equals(member))
  })

  test('content that is not in memory, larger than what is fetched at once', async () => {
    const noise = Buffer.from(Array.from({ length: 3_000_000 }, (_, n) => ((n * 2654435761) >>> 13) & 255))
    const { given, doubts } = await unpack(newZip([{ name: 'a', data: noise, method: 0 }, {}], { end64: true }), {
      spooled: true,
    })
    assert.deepEqual(doubts, [])
    assert.deepEqual(
      given.map(({ path }) => path),
      ['a', 'eicar.com'],
    )
    assert.ok(given[0]?.bytes.equals(noise))
  })
})

test('members in folders, of the same name and with hostile names are all given', async () => {
  const names = [
    'a/b/c',
    'a/b/c',
    'a',
    '../../etc/passwd',
    '/etc/passwd',
    'con\x07trol',
    '\u202efdp.exe',
    `${'x'.repeat(90)}/y`,
  ]
  const { given, doubts } = await unpack(newTar(names))
  assert.deepEqual(doubts, [])
  assert.equal(given.length, names.length)
  for (const { path, bytes } of given) {
    assert.ok(bytes.equals(member))
    assert.doesNotMatch(path, /[\x00-\x1f\u202e]|^\//)
    assert.ok(path.length <= 512)
  }
})

test('links, which have no bytes, raise no doubt', async () => {
  for (const type of ['1', '2', '5', '6'])
    assert.deepEqual((await unpack(newTar(['name'], member, { type, link: '/etc/passwd' }))).doubts, [], type)
})

describe('what is encrypted is told', () => {
  const forms: [string, () => Buffer | Promise<Buffer>][] = [
    ['7z', () => writeArchive(['-t7z', '-psecret'])],
    ['7z with an encrypted list', () => writeArchive(['-t7z', '-psecret', '-mhe=on'])],
    ['zip', () => writeArchive(['-tzip', '-psecret'])],
    ['zip with AES', () => writeArchive(['-tzip', '-psecret', '-mem=AES256'])],
    ['RAR 4 with an encrypted list', () => newRar4({ encryptedList: true })],
    ['RAR 5 with an encrypted list', () => newRar5({ encryptedList: true })],
  ]
  for (const [name, make] of forms)
    test(name, async () => assert.deepEqual((await unpack(await make())).doubts, ['EncryptedContent']))
})

test('a container that is cut off or broken always leaves a doubt', async () => {
  const noise = Buffer.from(Array.from({ length: 20_000 }, (_, n) => ((n * n * 31) >>> 3) & 255))
  for (const switches of [['-t7z'], ['-tzip', '-mm=LZMA'], ['-twim'], ['-txz'], ['-tgzip'], ['-tbzip2'], ['-ttar']]) {
    const archive = await writeArchive(switches, { noise })
    for (const cut of [archive.length - 1, archive.length >> 1, 40]) {
      // The last byte of a tar is padding, and its first 40 are only a name.
      if (switches[0] === '-ttar' && cut !== archive.length >> 1) continue
      const { doubts } = await unpack(archive.subarray(0, cut))
      assert.notDeepEqual(doubts, [], `${switches.join(' ')} cut at ${cut}`)
    }
  }
  assert.deepEqual((await unpack(Buffer.from('PK\x03\x04 no container'))).doubts, ['UnsupportedContainer'])
  const broken = newRar5()
  broken.writeUInt8(1, broken.indexOf(eicar) + 10)
  const result = await unpack(broken)
  assert.deepEqual(result.doubts, ['UnsupportedContainer'])
  assert.equal(result.given.length, 1)
})

test('a member that 7-Zip takes for the end is not overlooked', async () => {
  const rar = newRar4()
  rar.writeUInt8(255, 46)
  assert.deepEqual((await unpack(rar)).doubts, ['UnsupportedContainer'])
  const tar = Buffer.concat([newTar(['a']), newTar(['b'])])
  assert.deepEqual((await unpack(tar)).doubts, ['UnsupportedContainer'])
})

test('a zip behind other bytes is read by 7-Zip where its members are compressed with LZMA', async () => {
  const zip = Buffer.from(
    'UEsDBD8AAgAOAAAAIVyoHcSPJwAAADMAAAAFAAAAYS50eHQJBAUAXQAAgAAAMIgJBtPF4xpHgC+HKcnBFrUhBCyRq9X///zkoABQ' +
      'SwECPwM/AAIADgAAACFcqB3EjycAAAAzAAAABQAAAAAAAAAAAAAAgAEAAAAAYS50eHRQSwUGAAAAAAEAAQAzAAAASgAAAAAA',
    'base64',
  )
  const { given, doubts } = await unpack(Buffer.concat([Buffer.from('<p>A page.</p>\n'), zip]))
  assert.ok(given.some(({ bytes }) => bytes.toString() === 'a hidden member, '.repeat(3)))
  assert.deepEqual(doubts, [])
  // Of several zips, 7-Zip reads one.
  const joined = await unpack(Buffer.concat([newZip([{ method: 0 }]), Buffer.from('between'), zip]))
  assert.deepEqual(joined.doubts, ['UnsupportedContainer'])
})

test('bytes behind a zip, and around a container in a program, are given and raise no doubt', async () => {
  const tail = Buffer.alloc(5000, 'signature')
  const program = Buffer.concat([Buffer.from('#!/bin/sh\nexit\n'), await writeArchive(['-t7z', '-m0=BZip2']), tail])
  for (const bytes of [Buffer.concat([newZip([{}]), tail]), program]) {
    const { given, doubts } = await unpack(bytes)
    assert.deepEqual(doubts, [])
    assert.ok(given.some((one) => one.bytes.equals(member)))
    assert.ok(given.some((one) => one.bytes.equals(tail)))
  }
})

describe('limits', () => {
  test('a bomb is stopped at the budget, in bounded memory', async () => {
    const bomb = Buffer.concat(Array(10).fill(gzipSync(Buffer.alloc(50_000_000))))
    const budget = { members: 10, bytes: 60_000_000 }
    const own = openUnpacker({ log, maxProcesses: 1 })
    let seen = 0
    let peakKilobytes = 0
    const doubts = await own.unpack(newContent(bomb), {
      budget,
      work: { signal: AbortSignal.timeout(60_000) },
      async take({ bytes }) {
        for await (const piece of bytes) {
          seen += piece.length
          if (seen > 50_000_000 && peakKilobytes === 0) peakKilobytes = readPeakKilobytes(own.processIds()[0])
        }
      },
    })
    await own.close()
    assert.deepEqual(doubts, ['ScanLimitExceeded'])
    assert.deepEqual(budget, { members: 0, bytes: 0 })
    assert.ok(seen <= 60_000_000)
    assert.ok(peakKilobytes < 200_000, `${peakKilobytes} kB`)
  })

  test('too many members are stopped', async () => {
    const many = newTar(
      Array.from({ length: 20_000 }, (_, n) => `member-${n}`),
      Buffer.alloc(0),
    )
    const { given, doubts } = await unpack(many, { budget: { members: 500, bytes: 1000 } })
    assert.deepEqual(doubts, ['ScanLimitExceeded'])
    assert.equal(given.length, 500)
  })

  test('a container that needs too much memory is a doubt', async () => {
    const head = Buffer.from('5d00000080ffffffffffffffff0000000000000000', 'hex')
    const { doubts } = await unpack(Buffer.concat([head, Buffer.alloc(1000)]))
    assert.notDeepEqual(doubts, [])
  })
})

/** Two streams, as pbzip2 writes them: ClamAV reads only the first. */
async function newTwoStreams() {
  const halves = [member.subarray(0, 5), member.subarray(5)]
  return Buffer.concat(await Promise.all(halves.map((half) => writeArchive(['-tbzip2'], { half }))))
}

const readPeakKilobytes = (pid: number | undefined) =>
  process.platform === 'linux' ? Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) : 1
