import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const module = new URL('../../src/runtime/external-memory.ts', import.meta.url).href

/** Counts the full collections of a process that holds 256 MB in blocks, as the service does with content. */
function countCollections(preparation: string): number {
  const program = `
    import { PerformanceObserver } from 'node:perf_hooks'
    import { setImmediate as waitForTurn } from 'node:timers/promises'
    import { raiseLimitWithBuffers } from ${JSON.stringify(module)}
    ${preparation}
    let full = 0
    new PerformanceObserver((list) => {
      full += list.getEntries().filter(({ detail }) => detail.kind === 4).length
    }).observe({ entryTypes: ['gc'] })
    const blocks = []
    for (let i = 0; i < 1024; i++) {
      blocks.push(new ArrayBuffer(256 * 1024, { maxByteLength: 256 * 1024 }))
      await waitForTurn()
    }
    await waitForTurn()
    console.log(full)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return Number(stdout)
}

test('content in memory does not make V8 collect garbage again and again', () => {
  const [without, raised] = [countCollections(''), countCollections('raiseLimitWithBuffers()')]
  assert.ok(raised <= 3 && raised < without, `${raised} full collections, ${without} without the limit`)
})
