import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSharedContents } from '../../src/blobs/remote-content.ts'
import type { Content, Description } from '../../src/domain/content/content.ts'

test('a piece of shared content keeps its bytes when the memory of the content is reused', async () => {
  const block = Buffer.from('content')
  const content = {
    bytes: block.length,
    isInMemory: true,
    head: block,
    whole: block,
    async *read(start: number, end: number) {
      yield block.subarray(start, end)
    },
  }
  const shared = makeSharedContents()
  const piece = await shared.share(content as unknown as Content, {} as Description, ({ id }) =>
    shared.read({ id, start: 0, end: 4 }),
  )
  block.fill(0)
  assert.equal(piece.toString(), 'cont')
})
