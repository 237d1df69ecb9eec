import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const module = new URL('../../src/blobs/memory-content.ts', import.meta.url).href
const newBlocks = {
  ofPool: `makeBlockPool({ blockBytes: 256 * 1024, minFree: 0, maxFree: 0 }).take()`,
  ofNode: 'new ArrayBuffer(256 * 1024, { maxByteLength: 256 * 1024 })',
}

function run(program: string): string {
  const imported = `import { makeBlockPool } from ${JSON.stringify(module)}\n${program}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', imported], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return stdout
}

/** Counts the full collections of a process that holds 256 MB in blocks, as the service does with content. */
const countCollections = (newBlock: string): number =>
  Number(
    run(`
    import { PerformanceObserver } from 'node:perf_hooks'
    import { setImmediate as waitForTurn } from 'node:timers/promises'
    let full = 0
    new PerformanceObserver((list) => {
      full += list.getEntries().filter(({ detail }) => detail.kind === 4).length
    }).observe({ entryTypes: ['gc'] })
    const blocks = []
    for (let i = 0; i < 1024; i++) {
      blocks.push(${newBlock})
      await waitForTurn()
    }
    await waitForTurn()
    console.log(full)`),
  )

test('content in memory does not make V8 collect garbage again and again', () => {
  const [without, raised] = [countCollections(newBlocks.ofNode), countCollections(newBlocks.ofPool)]
  assert.ok(raised <= 3 && raised < without, `${raised} full collections, ${without} without the limit`)
})

test('a command keeps the flags with which the modules of Node are compiled', () => {
  const main = new URL('../../src/main.ts', import.meta.url).href
  const output = run(`
    import { cachedDataVersionTag } from 'node:v8'
    const before = cachedDataVersionTag()
    process.on('exit', () => console.log(cachedDataVersionTag() === before ? 'kept' : 'changed'))
    process.argv.push('main.ts', '--version')
    await import(${JSON.stringify(main)})`)
  assert.match(output, /\nkept\n$/)
})
