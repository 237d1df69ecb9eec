import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeVersionedCache } from '../../src/domain/scans/verdict.ts'

describe('the memory for what was found', () => {
  const [clean, threat] = [{ status: 'clean' }, { status: 'threat' }]

  test('gives it again under the version it was given under, and under no other', () => {
    const cache = makeVersionedCache({ entries: 10 })
    cache.keep('one', 'version 1', clean)
    cache.keep('other', 'version 1', threat)
    assert.equal(cache.find('one', 'version 1'), clean)
    assert.equal(cache.find('other', 'version 1'), threat)
    assert.equal(cache.find('one', 'version 2'), undefined)
    assert.equal(cache.find('third', 'version 1'), undefined)
    cache.keep('one', 'version 2', threat)
    assert.equal(cache.find('one', 'version 2'), threat)
    assert.equal(cache.find('one', 'version 1'), undefined)
  })

  test('forgets what was not asked for longest when it is full', () => {
    const cache = makeVersionedCache({ entries: 2 })
    cache.keep('one', 's', clean)
    cache.keep('two', 's', clean)
    cache.find('one', 's')
    cache.keep('three', 's', clean)
    assert.deepEqual(
      ['one', 'two', 'three'].map((name) => cache.find(name, 's') !== undefined),
      [true, false, true],
    )
  })

  test('of no entries remembers nothing', () => {
    const cache = makeVersionedCache({ entries: 0 })
    cache.keep('one', 'version', clean)
    assert.equal(cache.find('one', 'version'), undefined)
  })
})
