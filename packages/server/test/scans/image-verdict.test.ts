import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Scores } from '../../src/domain/ports/engines.ts'
import { decideImage } from '../../src/domain/scans/image-scan.ts'

const policy = { threshold: 0.6, flagsSexy: true }
const still = (scores: Scores) => ({ frames: [{ index: 0, ...scores }], isAnimated: false })

describe('the verdict on a picture', () => {
  test('is clean below the threshold and a threat from it on, with pornography and sexy summed', () => {
    assert.deepEqual(decideImage(still({ clean: 0.41, pornography: 0.3, sexy: 0.29 }), policy).status, 'clean')
    const threat = decideImage(still({ clean: 0.4, pornography: 0.35, sexy: 0.25 }), policy)
    assert.deepEqual([threat.status, threat.signals], ['threat', ['Classification:pornography']])
    const sexy = decideImage(still({ clean: 0.4, pornography: 0.25, sexy: 0.35 }), policy)
    assert.deepEqual([sexy.status, sexy.signals], ['threat', ['Classification:sexy']])
  })

  test('leaves sexy out for an account that does not mind it, and pornography never', () => {
    const lax = { threshold: 0.6, flagsSexy: false }
    assert.equal(decideImage(still({ clean: 0.05, pornography: 0.3, sexy: 0.65 }), lax).status, 'clean')
    const threat = decideImage(still({ clean: 0, pornography: 0.6, sexy: 0.4 }), lax)
    assert.deepEqual([threat.status, threat.signals], ['threat', ['Classification:pornography']])
  })

  test('is that of the worst frame, which is told', () => {
    const frames = [
      { index: 0, clean: 1, pornography: 0, sexy: 0 },
      { index: 57, clean: 0.1, pornography: 0.8, sexy: 0.1 },
      { index: 99, clean: 0.3, pornography: 0.7, sexy: 0 },
    ]
    const { status, metadata } = decideImage({ frames, isAnimated: true }, policy)
    assert.equal(status, 'threat')
    assert.deepEqual(metadata, {
      classification_clean: '0.1000',
      classification_pornography: '0.8000',
      classification_sexy: '0.1000',
      frames_scanned: '3',
      frame_index: '57',
    })
  })

  test('has the worst frame by what the account minds', () => {
    const frames = [
      { index: 3, clean: 0, pornography: 0.1, sexy: 0.9 },
      { index: 4, clean: 0.3, pornography: 0.7, sexy: 0 },
    ]
    const of = (flagsSexy: boolean) => decideImage({ frames, isAnimated: true }, { threshold: 0.6, flagsSexy })
    assert.deepEqual([of(true).metadata.frame_index, of(false).metadata.frame_index], ['3', '4'])
  })

  test('has scores that sum to 1 exactly as they are written', () => {
    for (const scores of [
      { clean: 1 / 3, pornography: 1 / 3, sexy: 1 / 3 },
      { clean: 0.99995, pornography: 0.00005, sexy: 0 },
      { clean: 0.00005, pornography: 0.49995, sexy: 0.5 },
      { clean: 1.0000001, pornography: -0.0000001, sexy: 0 },
    ]) {
      const written = Object.values(decideImage(still(scores), policy).metadata)
      assert.ok(
        written.every((text) => /^[01]\.\d{4}$/.test(text)),
        String(written),
      )
      assert.equal(
        written.reduce((sum, text) => sum + Number(text.replace('.', '')), 0),
        10_000,
      )
    }
  })

  test('is an error with its reason, and no scores, when it was not looked at', () => {
    assert.deepEqual(decideImage({ unscanned: 'UnsupportedImage' }, policy), {
      ...{ status: 'error', signals: ['Error:UnsupportedImage'], metadata: {} },
    })
  })
})
