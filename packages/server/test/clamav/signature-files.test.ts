import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  countSignatures,
  findOfficialDate,
  listSignatureFiles,
  placeSignatureFiles,
  toDigest,
} from '../../src/engines/clamav/signature-files.ts'
import { cvd, newSignatureDirs, toFile } from './signature-support.ts'

const none: ReadonlySet<string> = new Set()

describe('the list of signature files', () => {
  test('holds what clamd can load, of all three places, each under a name of its own', (t) => {
    const { dirs, write } = newSignatureDirs(t)
    for (const path of ['official/daily.cvd', 'official/extra.ndb', 'own/a.ndb', 'own/b.YAR', 'own/assay.ndb'])
      write(path, 'x')
    for (const path of ['own/readme.md', 'own/a.ndb.bak', 'official/freshclam.dat', 'official/freshclam.conf'])
      write(path, 'x')
    mkdirSync(join(dirs.own, 'folder.ndb'))
    const names = listSignatureFiles(dirs).map(({ loadedAs }) => loadedAs)
    assert.deepEqual(names.toSorted(), [
      'assay.ndb',
      'daily.cvd',
      'fetched-extra.ndb',
      'own-a.ndb',
      'own-assay.ndb',
      'own-b.YAR',
    ])
  })

  test('leaves out what is half-written', (t) => {
    const { dirs, write } = newSignatureDirs(t)
    write('own/.a.ndb.part', 'x')
    write('own/.b.ndb', 'x')
    write('official/.daily.cvd', 'x')
    assert.deepEqual(
      listSignatureFiles(dirs).map(({ loadedAs }) => loadedAs),
      ['assay.ndb'],
    )
  })

  test('holds the newer of a database and its twin', (t) => {
    const { dirs, write } = newSignatureDirs(t)
    write('official/daily.cvd', 'x', 1)
    write('official/daily.cld', 'x', 2)
    write('official/main.cvd', 'x', 5)
    write('official/main.cld', 'x', 4)
    const names = listSignatureFiles(dirs).map(({ loadedAs }) => loadedAs)
    assert.deepEqual(names.toSorted(), ['assay.ndb', 'daily.cld', 'main.cvd'])
  })

  test('holds all files of one name but different kinds: they are no twins', (t) => {
    const { dirs, write } = newSignatureDirs(t)
    write('official/expert.hdb', 'x', 1)
    write('official/expert.ldb', 'x', 2)
    write('official/expert.ndb', 'x', 3)
    const names = listSignatureFiles(dirs).map(({ loadedAs }) => loadedAs)
    assert.deepEqual(names.toSorted(), ['assay.ndb', 'fetched-expert.hdb', 'fetched-expert.ldb', 'fetched-expert.ndb'])
  })

  test('is only ours where the other places do not exist', (t) => {
    const { dirs } = newSignatureDirs(t)
    assert.deepEqual(
      listSignatureFiles(dirs).map(({ loadedAs }) => loadedAs),
      ['assay.ndb'],
    )
  })
})

describe('the directory that clamd loads', () => {
  test('holds just what is listed, and follows each change', async (t) => {
    const { dirs, databaseDir, write, remove } = newSignatureDirs(t)
    const read = (name: string) => readFileSync(join(databaseDir, name), 'utf8')
    write('own/a.ndb', 'one', 1)
    write('own/b.ndb', 'two', 1)
    mkdirSync(databaseDir)
    writeFileSync(join(databaseDir, 'left-over.ndb'), 'x')
    writeFileSync(join(databaseDir, '.own-a.ndb.part'), 'half')
    await placeSignatureFiles(listSignatureFiles(dirs), none, databaseDir)
    assert.deepEqual(readdirSync(databaseDir).toSorted(), ['assay.ndb', 'own-a.ndb', 'own-b.ndb'])
    assert.equal(read('own-a.ndb'), 'one')
    write('own/a.ndb', 'other')
    remove('own/b.ndb')
    await placeSignatureFiles(listSignatureFiles(dirs), none, databaseDir)
    assert.deepEqual(readdirSync(databaseDir).toSorted(), ['assay.ndb', 'own-a.ndb'])
    assert.equal(read('own-a.ndb'), 'other')
  })

  test('takes a file over that is older than the one before and just as long', async (t) => {
    // `mv` and `cp -p` keep the time of the last change: the file that replaces another may be older than our copy.
    const { dirs, databaseDir, write } = newSignatureDirs(t)
    write('own/a.ndb', 'one', 10)
    await placeSignatureFiles(listSignatureFiles(dirs), none, databaseDir)
    write('own/a.ndb', 'two', 5)
    await placeSignatureFiles(listSignatureFiles(dirs), none, databaseDir)
    assert.equal(readFileSync(join(databaseDir, 'own-a.ndb'), 'utf8'), 'two')
  })

  test('keeps the earlier version of a file that was refused, and no version of one that is new', async (t) => {
    const { dirs, databaseDir, write } = newSignatureDirs(t)
    const changed = write('own/a.ndb', 'good', 1)
    await placeSignatureFiles(listSignatureFiles(dirs), none, databaseDir)
    write('own/a.ndb', 'broken now')
    const fresh = write('own/b.ndb', 'broken')
    await placeSignatureFiles(listSignatureFiles(dirs), new Set([changed, fresh]), databaseDir)
    assert.equal(readFileSync(join(databaseDir, 'own-a.ndb'), 'utf8'), 'good')
    assert.deepEqual(readdirSync(databaseDir).toSorted(), ['assay.ndb', 'own-a.ndb'])
  })
})

describe('signatures', () => {
  const counted: Record<string, [text: string, count: number]> = {
    'a.ndb': ['# a comment\nOne:0:*:6161\n\nTwo:0:*:6262\n', 2],
    'a.ldb': ['One;Engine:81-255,Target:0;0;6161\nTwo;Target:0;0;6262', 2],
    'a.hdb': ['44d88612fea8a8f36de82e1278abb02f:68:Eicar\r\n', 1],
    'empty.ndb': ['', 0],
    'a.yar': ['import "pe"\nrule one { condition: true }\n  private rule two { condition: true }\n// rule three\n', 2],
    'a.yara': ['global private rule one : tag { condition: true }\n/* ruler */ ruleset\n', 1],
    'daily.cvd': [cvd('14 Nov 2026 08-25 +0000', 2_068_042), 2_068_042],
    'daily.cld': [cvd('14 Nov 2026 08-25 +0100', 7), 7],
    'broken.cvd': ['no header at all', 0],
  }
  for (const [name, [text, count]] of Object.entries(counted)) {
    test(`are counted in ${name}: ${count}`, async (t) => {
      const { write } = newSignatureDirs(t)
      assert.equal(await countSignatures(toFile(write(`own/${name}`, text))), count)
    })
  }

  test('have the date in the header of daily, if main is there too, and never that of other files', (t) => {
    const { dirs, write, remove } = newSignatureDirs(t)
    const find = () => findOfficialDate(listSignatureFiles(dirs))?.toISOString()
    write('own/a.ndb', 'x')
    write('own/daily.cvd', cvd('16 Nov 2026 08-25 +0000', 1))
    write('official/bytecode.cvd', cvd('15 Nov 2026 08-25 +0000', 1))
    write('official/fetched.ndb', 'x')
    assert.equal(find(), undefined)
    write('official/daily.cvd', cvd('14 Nov 2026 08-25 +0200', 1))
    assert.equal(find(), undefined)
    write('official/main.cvd', cvd('16 Sep 2021 08-32 -0400', 1))
    assert.equal(find(), '2026-11-14T06:25:00.000Z')
    remove('official/daily.cvd')
    write('official/daily.cld', cvd('15 Nov 2026 08-25 +0200', 1))
    assert.equal(find(), '2026-11-15T06:25:00.000Z')
    write('official/daily.cld', 'no header at all')
    assert.equal(find(), undefined)
  })
})

test('the digest differs whenever a file does, and only then', (t) => {
  const { dirs, write, remove } = newSignatureDirs(t)
  const digests = new Set<string>()
  const note = () => {
    const digest = toDigest(listSignatureFiles(dirs))
    assert.equal(digest, toDigest(listSignatureFiles(dirs)))
    assert.equal(digests.has(digest), false)
    digests.add(digest)
  }
  note()
  write('own/a.ndb', 'x', 1)
  note()
  write('own/a.ndb', 'y', 2)
  note()
  write('own/a.ndb', 'longer', 2)
  note()
  write('own/b.ndb', 'x', 1)
  note()
  remove('own/a.ndb')
  note()
})
