import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { SignatureFile } from '../../src/engines/clamav/signature-files.ts'
import { makeSignatureLibrary } from '../../src/engines/clamav/signature-library.ts'
import { watchStalls } from '../../src/runtime/timers.ts'
import { silentLog } from '../support/silent-log.ts'
import { newSignatureDirs } from './signature-support.ts'

/** A trial that refuses all given files when one of them contains `broken`, as clamd does. */
function openLibrary(t: TestContext) {
  const place = newSignatureDirs(t)
  const tried: string[][] = []
  const trial = {
    async findFault(files: SignatureFile[]) {
      tried.push(files.map(({ loadedAs }) => loadedAs))
      return files.some(({ path }) => readFileSync(path, 'utf8').includes('broken')) ? 'Malformed database' : undefined
    },
  }
  const library = makeSignatureLibrary({ dirs: place.dirs, databaseDir: place.databaseDir, trial, log: silentLog })
  const read = (name: string) => readFileSync(join(place.databaseDir, name), 'utf8')
  return { ...place, library, tried, read, list: () => readdirSync(place.databaseDir).toSorted() }
}

describe('the signature library', () => {
  /** Stalls are measured by the processor time of this thread, so that other programs do not count. */
  test('places and counts a text database of 200 MB without a stall of the event loop', async (t) => {
    const { library, write } = openLibrary(t)
    const path = write('own/large.ndb', '', 1)
    const lines = Buffer.from(`${'Test.Large:0:*:'.padEnd(99, '6')}\n`.repeat(20_000))
    for (let n = 0; n < 100; n++) appendFileSync(path, lines)
    const stalls = watchStalls()
    assert.equal(await library.placeFiles(), true)
    assert.ok((await library.count()) >= 2_000_000)
    // The watch has its turn after the work.
    while (stalls.findLongestSeconds() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    stalls.close()
    assert.equal(stalls.countStalls(), 0, `the longest took ${stalls.findLongestSeconds()} s`)
  })

  test('tells whether what clamd has is still what there is', async (t) => {
    const { library, write, remove } = openLibrary(t)
    assert.equal(await library.placeFiles(), true)
    assert.equal(await library.placeFiles(), false)
    write('own/a.ndb', 'x', 1)
    assert.equal(await library.placeFiles(), true)
    assert.equal(await library.placeFiles(), false)
    remove('own/a.ndb')
    assert.equal(await library.placeFiles(), true)
  })

  test('tries only what is new, all together, and one by one when that fails', async (t) => {
    const { library, write, tried, list } = openLibrary(t)
    await library.placeFiles()
    await library.tryNewFiles()
    assert.deepEqual(tried, [])
    write('own/a.ndb', 'good')
    write('own/b.ndb', 'broken')
    await library.tryNewFiles()
    assert.deepEqual(tried, [['own-a.ndb', 'own-b.ndb'], ['own-a.ndb'], ['own-b.ndb']])
    await library.placeFiles()
    assert.deepEqual(list(), ['assay.ndb', 'own-a.ndb'])
    await library.tryNewFiles()
    assert.equal(tried.length, 3)
  })

  test('goes on with the earlier version of a file that broke, and says which it is', async (t) => {
    const { library, write, read } = openLibrary(t)
    write('own/a.ndb', 'good', 1)
    await library.placeFiles()
    const path = write('own/a.ndb', 'broken')
    await library.tryNewFiles()
    await library.placeFiles()
    assert.equal(read('own-a.ndb'), 'good')
    assert.deepEqual(library.listRefused(), [{ path, reason: 'Malformed database' }])
  })

  test('takes a repaired file in', async (t) => {
    const { library, write, read } = openLibrary(t)
    await library.placeFiles()
    write('own/a.ndb', 'broken', 1)
    await library.tryNewFiles()
    await library.placeFiles()
    write('own/a.ndb', 'repaired', 2)
    await library.tryNewFiles()
    assert.equal(await library.placeFiles(), true)
    assert.equal(read('own-a.ndb'), 'repaired')
    assert.deepEqual(library.listRefused(), [])
  })

  test('notices that the earlier version of a broken file has gone with it', async (t) => {
    const { library, write, remove, databaseDir } = openLibrary(t)
    write('own/a.ndb', 'good', 1)
    await library.placeFiles()
    write('own/a.ndb', 'broken', 2)
    await library.tryNewFiles()
    await library.placeFiles()
    remove('own/a.ndb')
    await library.tryNewFiles()
    // Otherwise clamd would keep signatures that the operator has removed.
    assert.equal(await library.placeFiles(), true)
    assert.equal(existsSync(join(databaseDir, 'own-a.ndb')), false)
  })

  test('counts the earlier version of a broken file among what is loaded', async (t) => {
    const { library, write } = openLibrary(t)
    write('own/a.ndb', 'One:0:*:6161\nTwo:0:*:6262\n', 1)
    await library.placeFiles()
    assert.equal(await library.count(), 3)
    write('own/a.ndb', 'broken', 2)
    await library.tryNewFiles()
    await library.placeFiles()
    assert.equal(await library.count(), 3)
  })

  test('finds the files to blame when clamd does not start, and takes them away from it', async (t) => {
    const { library, write, list } = openLibrary(t)
    write('own/a.ndb', 'good')
    write('own/b.ndb', 'broken')
    await library.placeFiles()
    assert.equal(await library.tryAllFiles(), true)
    await library.placeFiles()
    assert.deepEqual(list(), ['assay.ndb', 'own-a.ndb'])
  })

  test('blames no file when all of them load', async (t) => {
    const { library, write } = openLibrary(t)
    write('own/a.ndb', 'good')
    await library.placeFiles()
    assert.equal(await library.tryAllFiles(), false)
  })

  test('has another digest for each set of signatures', async (t) => {
    const { library, write } = openLibrary(t)
    await library.placeFiles()
    const first = library.describe().digest
    write('own/a.ndb', 'good')
    assert.equal(library.describe().digest, first)
    await library.placeFiles()
    assert.notEqual(library.describe().digest, first)
  })
})
