import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ImageReport } from '../../src/domain/ports/engines.ts'
import { type ModelRuns, makeProcessorBudget, scorePicture } from '../../src/engines/nsfw/child/classifier.ts'
import { largeShape, smallShape } from '../../src/engines/nsfw/models/model.ts'
import type { Pass, Picture, View } from '../../src/engines/nsfw/pixels/open-picture.ts'
import { newUnsupported } from '../../src/engines/nsfw/pixels/render.ts'

const unlimited = { isSpent: () => false }
const spent = { isSpent: () => true }

const toScores = (unsafe: number) => ({ clean: 1 - unsafe / 100, pornography: unsafe / 100, sexy: 0 })

/** Each view has one byte: its unsafe score in percent, and 4 more for the second model. */
const makeView = (index: number, unsafe: number, parts: number[] = []): View => ({
  index,
  background: 'white',
  render: async ({ side }) => Buffer.from([side === smallShape.side ? unsafe : unsafe + 4]),
  readParts: async ({ isCloser, hasTilesBesideParts }) => ({
    views: (isCloser ? [...parts, hasTilesBesideParts ? 2 : 1] : parts).map((part) => makeView(index, part)),
    prepare: async () => {},
  }),
})

function makeModels(suspicion: number) {
  const seconds: number[] = []
  const models: ModelRuns = {
    first: { shape: smallShape, run: async ([unsafe = 0]) => toScores(unsafe) },
    second: {
      shape: largeShape,
      async run([unsafe = 0]) {
        seconds.push(unsafe)
        return toScores(unsafe)
      },
    },
    wantsSecond: ({ clean }) => 1 - clean >= suspicion,
    wantsCloser: () => false,
    hasTilesBesideParts: false,
    partExponent: 2.8,
  }
  return { models, seconds }
}

function makePicture(passes: number[][], end?: Error) {
  const prepared: number[] = []
  let index = 0
  const toPass = (unsafes: number[]): Pass => ({
    views: unsafes.map((unsafe) => makeView(index++, unsafe)),
    async prepare(views, { side }) {
      if (side === largeShape.side) prepared.push(views.length)
    },
  })
  const picture: Picture = {
    isAnimated: true,
    framesTotal: 9,
    async *passes() {
      for (const pass of passes) yield toPass(pass)
      if (end !== undefined) throw end
    },
  }
  return { picture, prepared }
}

const toUnsafe = (report: ImageReport) =>
  'frames' in report ? report.frames.map(({ index, pornography }) => [index, Math.round(pornography * 100)]) : []

describe('the views of a picture', () => {
  test('all get scores, those that are suspicious by both models, decoded at once', async () => {
    const { picture, prepared } = makePicture([[3, 50, 4], [60]])
    const { models, seconds } = makeModels(0.1)
    const report = await scorePicture(picture, models, unlimited)
    assert.deepEqual(toUnsafe(report).sort(), [
      [0, 3],
      [1, 52],
      [2, 4],
      [3, 62],
    ])
    assert.deepEqual(
      [prepared, seconds],
      [
        [1, 1],
        [54, 64],
      ],
    )
    assert.ok('frames' in report && report.doubt === undefined && report.framesTotal === 9)
  })

  test('are looked at again from the most suspicious on', async () => {
    const { models, seconds } = makeModels(0.1)
    await scorePicture(makePicture([[20, 70, 40]]).picture, models, unlimited)
    assert.deepEqual(seconds, [74, 44, 24])
  })

  test('are scored until the budget ends, one at any price; then there is a doubt', async () => {
    for (const suspicion of [0.1, 2]) {
      const { models } = makeModels(suspicion)
      const report = await scorePicture(makePicture([[50, 60], [70]]).picture, models, spent)
      assert.ok('frames' in report)
      assert.deepEqual([report.frames.length, report.doubt], [1, 'ScanLimitExceeded'])
      const still = await scorePicture(makePicture([[50]]).picture, models, spent)
      assert.ok('frames' in still && still.doubt === undefined)
    }
  })

  test('have parts, which count less than a whole', async () => {
    const picture: Picture = {
      isAnimated: false,
      framesTotal: 1,
      async *passes() {
        yield { views: [makeView(0, 3, [90])], prepare: async () => {} }
      },
    }
    const report = await scorePicture(picture, makeModels(2).models, unlimited)
    assert.deepEqual(toUnsafe(report), [
      [0, 3],
      [0, 74],
    ])
  })

  test('have tiles beside other parts if the profile wants them', async () => {
    for (const hasTilesBesideParts of [false, true]) {
      const picture: Picture = {
        isAnimated: false,
        framesTotal: 1,
        async *passes() {
          yield { views: [makeView(0, 3)], prepare: async () => {} }
        },
      }
      const models = { ...makeModels(2).models, partExponent: 1, wantsCloser: () => true, hasTilesBesideParts }
      const report = await scorePicture(picture, models, unlimited)
      assert.deepEqual(toUnsafe(report), [
        [0, 3],
        [0, hasTilesBesideParts ? 2 : 1],
      ])
    }
  })

  test('that cannot be decoded leave a doubt, or nothing when there is no other', async () => {
    const { models } = makeModels(0.1)
    const report = await scorePicture(makePicture([[3]], newUnsupported('broken')).picture, models, unlimited)
    assert.ok('frames' in report && report.doubt === 'UnsupportedImage')
    const none = await scorePicture(makePicture([], newUnsupported('broken')).picture, models, unlimited)
    assert.deepEqual(none, { unscanned: 'UnsupportedImage' })
  })
})

test('a budget counts the processor time of the process, not the time that passes', () => {
  const never = makeProcessorBudget(Number.POSITIVE_INFINITY)
  const soon = makeProcessorBudget(1)
  const start = process.cpuUsage()
  for (;;) {
    const { user, system } = process.cpuUsage(start)
    if (user + system > 2_000) break
  }
  assert.deepEqual([never.isSpent(), soon.isSpent()], [false, true])
})
