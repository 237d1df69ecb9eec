import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeCores, toCores } from '../../src/engines/nsfw/cores.ts'

describe('cores for image processes', () => {
  test('one process may go anywhere, each other gets the one that has the fewest', () => {
    const { take, release } = makeCores({ processes: 4, usable: [4, 5] })
    assert.deepEqual([take(), take(), take(), take()], [undefined, 4, 5, 4])
    release(5)
    assert.equal(take(), 5)
    release(4)
    release(4)
    assert.deepEqual([take(), take(), take()], [4, 4, 5])
    release(undefined)
    assert.deepEqual([take(), take()], [undefined, 4])
  })

  test('none is given where the kernel has a choice, or none are known', () => {
    for (const [processes, usable] of [
      [1, [0, 1]],
      [7, [0, 1, 2, 3, 4, 5, 6, 7]],
      [2, [0]],
      [2, []],
    ] as const) {
      const { take, release } = makeCores({ processes, usable: [...usable] })
      assert.equal(take(), undefined)
      release(undefined)
    }
  })

  test('the list of the kernel', () => {
    assert.deepEqual(toCores('0-2,5,8-9'), [0, 1, 2, 5, 8, 9])
    assert.deepEqual(toCores('3'), [3])
    assert.deepEqual(toCores(''), [])
  })
})
