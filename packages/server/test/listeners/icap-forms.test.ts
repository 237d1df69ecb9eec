import assert from 'node:assert/strict'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { newMessageScan } from '../../src/listeners/icap/message-scan.ts'
import { newTestDir } from '../blobs/test-dir.ts'

/** More than content that is hashed in one piece: chunks move to a thread, and their memory with them. */
const first = Buffer.alloc(300_000, 'one ')
const second = Buffer.from('MZ second file')
const toHead = (name: string) => `--bound\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`
const body = Buffer.concat([
  Buffer.from(toHead('one')),
  first,
  Buffer.from(`\r\n${toHead('two')}`),
  second,
  Buffer.from('\r\n--bound--\r\n'),
])
const chunkBytes = 65_536

test('each file of a form is scanned whole, wherever chunks cut its boundary and header', async (t) => {
  const memory = makeMemoryBudget({ maxBytes: 64_000_000 })
  const store = openContentStore({ dir: join(newTestDir(t), 'content'), memory })
  t.after(store.close)
  const begin = body.indexOf(`\r\n${toHead('two')}`)
  const end = begin + `\r\n${toHead('two')}`.length
  for (let cut = begin; cut <= end; cut++) {
    const seen = await scanInChunks(store, cut)
    assert.deepEqual([...seen.keys()], ['one', 'two', null], `cut at ${cut - begin}`)
    assert(seen.get('one')?.equals(first), `cut at ${cut - begin}`)
    assert(seen.get('two')?.equals(second), `cut at ${cut - begin}`)
    assert(seen.get(null)?.equals(body), `cut at ${cut - begin}`)
  }
})

/** Sends the form in chunks, one of which ends at `cut`, and returns what was scanned by its name. */
async function scanInChunks(store: ReturnType<typeof openContentStore>, cut: number) {
  const seen = new Map<string | null, Buffer>()
  const scans = {
    async begin() {
      const writer = store.newWriter({ accountId: 'account' })
      return {
        write: writer.write,
        async finish(name: string | null) {
          const content = await writer.finish()
          seen.set(name, await buffer(content.read()))
          await content.release()
          return { scan: { id: 'scan', status: 'clean', signals: [] } }
        },
        takeContent: writer.finish,
        abort: writer.abort,
      }
    },
  }
  const deps = { scans, reportUnscanned: assert.fail } as unknown as Parameters<typeof newMessageScan>[1]
  const message = { boundary: 'bound', contentName: null } as unknown as Parameters<typeof newMessageScan>[0]
  const scan = newMessageScan(message, deps)
  await scan.begin()
  let at = 0
  const ends = []
  for (let end = cut; end > 0; end -= chunkBytes) ends.unshift(end)
  for (const end of [...ends, body.length]) {
    // A socket gives memory of its own for each chunk.
    const chunk = Buffer.allocUnsafeSlow(end - at)
    body.copy(chunk, 0, at, end)
    await scan.write(chunk)
    at = end
  }
  await scan.finish()
  return seen
}
