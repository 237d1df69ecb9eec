import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { scanCorpus } from '../../src/compose/sources/trial.ts'
import { trySignatures } from '../../src/compose/sources/try-signatures.ts'
import { toNdb } from './feed-support.ts'

describe('the trial of signatures', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-trial-'))
  const contents = openContentStore({ dir: join(dir, 'content'), memory: makeMemoryBudget({ maxBytes: 2 ** 20 }) })
  after(async () => {
    await contents.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const letter = join(dir, 'letter.txt')
  writeFileSync(letter, 'This letter is known to be good.')

  test('counts the files that were read, and fails without any', async () => {
    const { signal } = new AbortController()
    const scan = (paths: string[]) => scanCorpus({ paths, contents, signal }, async () => [])
    assert.deepEqual(await scan([join(dir, 'gone'), letter]), { alarms: [], scanned: 1 })
    await assert.rejects(scan([join(dir, 'gone')]), /None of the known-good files can be read/)
  })

  const files = ['a.ndb', 'b.ndb', 'c.ndb'].map((name) => {
    const path = join(dir, name)
    writeFileSync(path, toNdb('Feed.One', 'pattern'))
    return { name, path }
  })
  const withClamd = () => Promise.reject(new Error('does not load'))

  test('ends with the load that runs when the service stops', async () => {
    const stopping = new AbortController()
    let loads = 0
    const findFault = async () => {
      loads++
      stopping.abort(new Error('stopping'))
      return undefined
    }
    const corpus = { paths: [letter], contents, signal: stopping.signal }
    const trial = { withClamd, findFault }
    await assert.rejects(trySignatures(files, { trial, corpus, released: [] }), /^Error: stopping/)
    assert.equal(loads, 1)
  })

  test('refuses files that load alone and not together', async () => {
    const corpus = { paths: [letter], contents, signal: new AbortController().signal }
    let loads = 0
    const findFault = async () => {
      loads++
      return undefined
    }
    const trial = { withClamd, findFault }
    await assert.rejects(trySignatures(files, { trial, corpus, released: [] }), /do not load together/)
    assert.equal(loads, files.length)
  })
})
