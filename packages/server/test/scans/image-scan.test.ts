import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { EngineDown, type ImageEngine, type ImageReport } from '../../src/domain/ports/engines.ts'
import { makeImageScan } from '../../src/domain/scans/image-scan.ts'
import { makeVersionedCache } from '../../src/domain/scans/verdict.ts'
import { newContent, state } from './scan-support.ts'

const neutral: ImageReport = { frames: [{ index: 0, clean: 1, pornography: 0, sexy: 0 }], isAnimated: false }

function newImageScan(setup: { engine?: Partial<ImageEngine> | null; report?: ImageReport; tests?: boolean } = {}) {
  let asked = 0
  const engine: ImageEngine = {
    name: 'Test',
    kind: 'image',
    findState: () => state,
    async classify() {
      asked++
      return setup.report ?? neutral
    },
    ...setup.engine,
  }
  const images = makeImageScan({
    findEngine: () => (setup.engine === null ? undefined : engine),
    cache: makeVersionedCache({ entries: 10 }),
    threshold: 0.6,
    knowsTestImages: setup.tests ?? true,
  })
  return { ...images, countAsked: () => asked }
}

const minds = { flagsSexy: true }
const readCard = (name: string) =>
  newContent(readFileSync(new URL(`../../../../docs/test-images/${name}.png`, import.meta.url)).toString('latin1'))

describe('an image scan', () => {
  test('without an engine, or one that is not up, gives no verdict', async () => {
    await assert.rejects(newImageScan({ engine: null }).assess(newContent('a'), minds), EngineDown)
    const down = newImageScan({ engine: { findState: () => undefined } })
    await assert.rejects(down.assess(newContent('a'), minds), EngineDown)
  })

  test('of a picture seen before takes the scores from memory, and the verdict from the account of now', async () => {
    const sexy: ImageReport = { frames: [{ index: 0, clean: 0, pornography: 0.1, sexy: 0.9 }], isAnimated: false }
    const { assess, countAsked } = newImageScan({ report: sexy })
    assert.equal((await assess(newContent('a'), { flagsSexy: true })).status, 'threat')
    assert.equal((await assess(newContent('a'), { flagsSexy: false })).status, 'clean')
    assert.equal(countAsked(), 1)
  })

  test('remembers nothing that was not looked at: the next try may go better', async () => {
    const { assess, countAsked } = newImageScan({ report: { unscanned: 'ScanLimitExceeded' } })
    for (let i = 0; i < 2; i++) {
      const { status, signals } = await assess(newContent('a'), minds)
      assert.deepEqual([status, signals], ['error', ['Error:ScanLimitExceeded']])
    }
    assert.equal(countAsked(), 2)
  })

  test('gives the test images the verdict they stand for, without an engine, unless that is switched off', async () => {
    const { assess } = newImageScan({ engine: null })
    for (const label of ['pornography', 'sexy']) {
      const { status, signals } = await assess(readCard(label), minds)
      assert.deepEqual([status, signals], ['threat', [`Classification:${label}`]])
    }
    assert.equal((await assess(readCard('sexy'), { flagsSexy: false })).status, 'clean')
    const off = newImageScan({ tests: false })
    assert.equal((await off.assess(readCard('pornography'), minds)).status, 'clean')
    assert.equal(off.countAsked(), 1)
  })
})
