import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { EngineDown, type ImageEngine, type ImageReport } from '../../src/domain/ports/engines.ts'
import { decideImage, makeImageScan } from '../../src/domain/scans/image-scan.ts'
import { makeVersionedCache } from '../../src/domain/scans/scan.ts'
import { newContent, state } from './scan-support.ts'

const neutral: ImageReport = {
  frames: [{ index: 0, clean: 1, pornography: 0, sexy: 0 }],
  framesTotal: 1,
  isAnimated: false,
}

function newImageScan(setup: { engine?: Partial<ImageEngine> | null; report?: ImageReport; tests?: boolean } = {}) {
  let calls = 0
  const engine: ImageEngine = {
    name: 'Test',
    kind: 'image',
    findState: () => state,
    async classify() {
      calls++
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
  return { ...images, countCalls: () => calls }
}

const accountId = 'one account'
const strict = { flagsSexy: true, accountId }
const readCard = (name: string) =>
  newContent(readFileSync(new URL(`../../../../docs/test-images/${name}.png`, import.meta.url)).toString('latin1'))

describe('an image scan', () => {
  test('without an engine that is running gives no verdict', async () => {
    await assert.rejects(newImageScan({ engine: null }).assess(newContent('a'), strict), EngineDown)
    const down = newImageScan({ engine: { findState: () => undefined } })
    await assert.rejects(down.assess(newContent('a'), strict), EngineDown)
  })

  test('of a known picture takes the scores from the cache, and the policy from the account of this request', async () => {
    const sexy: ImageReport = {
      frames: [{ index: 0, clean: 0, pornography: 0.1, sexy: 0.9 }],
      framesTotal: 1,
      isAnimated: false,
    }
    const { assess, countCalls } = newImageScan({ report: sexy })
    assert.equal((await assess(newContent('a'), strict)).status, 'threat')
    assert.equal((await assess(newContent('a'), { flagsSexy: false, accountId })).status, 'clean')
    assert.equal(countCalls(), 1)
    // Another account could tell by the time that somebody has scanned the picture.
    await assess(newContent('a'), { ...strict, accountId: 'another account' })
    assert.equal(countCalls(), 2)
  })

  test('does not cache a picture that was not scanned: the next scan may succeed', async () => {
    const { assess, countCalls } = newImageScan({ report: { unscanned: 'ScanLimitExceeded' } })
    for (let i = 0; i < 2; i++) {
      const { status, signals } = await assess(newContent('a'), strict)
      assert.deepEqual([status, signals], ['error', ['Error:ScanLimitExceeded']])
    }
    assert.equal(countCalls(), 2)
  })

  test('gives the test images the verdict they stand for, without an engine, unless that is switched off', async () => {
    const { assess } = newImageScan({ engine: null })
    for (const label of ['pornography', 'sexy']) {
      const { status, signals } = await assess(readCard(label), strict)
      assert.deepEqual([status, signals], ['threat', [`Classification:${label}`]])
    }
    assert.equal((await assess(readCard('sexy'), { flagsSexy: false, accountId })).status, 'clean')
    const off = newImageScan({ tests: false })
    assert.equal((await off.assess(readCard('pornography'), strict)).status, 'clean')
    assert.equal(off.countCalls(), 1)
  })
})

describe('the verdict on a picture', () => {
  const policy = { threshold: 0.6, flagsSexy: true }
  const lax = { threshold: 0.6, flagsSexy: false }
  const still = ([clean, pornography, sexy]: [number, number, number]) => ({
    frames: [{ index: 0, clean, pornography, sexy }],
    framesTotal: 1,
    isAnimated: false,
  })

  for (const [what, scores, by, label] of [
    ['is clean below the threshold', [0.41, 0.3, 0.29], policy, undefined],
    ['sums pornography and sexy', [0.4, 0.35, 0.25], policy, 'pornography'],
    ['is labelled by the larger score', [0.4, 0.25, 0.35], policy, 'sexy'],
    ['ignores sexy for an account that allows it', [0.05, 0.3, 0.65], lax, undefined],
    ['never ignores pornography', [0, 0.6, 0.4], lax, 'pornography'],
  ] as const) {
    test(what, () => {
      const { status, signals } = decideImage(still([...scores]), by)
      const expected = label === undefined ? ['clean', []] : ['threat', [`Classification:${label}`]]
      assert.deepEqual([status, signals], expected)
    })
  }

  test('is that of the worst frame, which is named', () => {
    const frames = [
      { index: 0, clean: 1, pornography: 0, sexy: 0 },
      { index: 57, clean: 0.1, pornography: 0.8, sexy: 0.1 },
      { index: 99, clean: 0.3, pornography: 0.7, sexy: 0 },
    ]
    const { status, metadata } = decideImage({ frames, framesTotal: 100, isAnimated: true }, policy)
    assert.equal(status, 'threat')
    assert.deepEqual(metadata, {
      classification_clean: '0.1000',
      classification_pornography: '0.8000',
      classification_sexy: '0.1000',
      frames_total: '100',
      frames_scanned: '3',
      frame_index: '57',
    })
  })

  test('of a picture of which a part was not classified is a threat or an error, never clean', () => {
    const doubted = (pornography: number): ImageReport => ({
      frames: [{ index: 0, clean: 1 - pornography, pornography, sexy: 0 }],
      framesTotal: 1000,
      isAnimated: true,
      doubt: 'ScanLimitExceeded',
    })
    assert.deepEqual(decideImage(doubted(0.9), policy).signals, ['Classification:pornography'])
    assert.deepEqual(decideImage(doubted(0.1), policy), {
      status: 'error',
      signals: ['Error:ScanLimitExceeded'],
      metadata: {},
    })
  })

  test('chooses the worst frame by the settings of the account', () => {
    const frames = [
      { index: 3, clean: 0, pornography: 0.1, sexy: 0.9 },
      { index: 4, clean: 0.3, pornography: 0.7, sexy: 0 },
    ]
    const worst = [policy, lax].map(
      (by) => decideImage({ frames, framesTotal: 9, isAnimated: true }, by).metadata.frame_index,
    )
    assert.deepEqual(worst, ['3', '4'])
  })

  test('shows scores that sum to exactly 1', () => {
    for (const scores of [
      [1 / 3, 1 / 3, 1 / 3],
      [0.99995, 0.00005, 0],
      [0.00005, 0.49995, 0.5],
      [1.0000001, -0.0000001, 0],
    ] as const) {
      const written = Object.values(decideImage(still([...scores]), policy).metadata)
      for (const text of written) assert.match(text, /^[01]\.\d{4}$/)
      const sum = written.reduce((total, text) => total + Number(text.replace('.', '')), 0)
      assert.equal(sum, 10_000)
    }
  })

  test('is an error with its reason, and without scores, for a picture that was not scanned', () => {
    const verdict = decideImage({ unscanned: 'UnsupportedImage' }, policy)
    assert.deepEqual(verdict, { status: 'error', signals: ['Error:UnsupportedImage'], metadata: {} })
  })
})
