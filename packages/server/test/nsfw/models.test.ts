import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { convert } from '../../src/engines/nsfw/models/convert.ts'
import { centreKernel } from '../../src/engines/nsfw/models/int8-onnx.ts'
import {
  type Encoding,
  encodings,
  type ModelName,
  modelNames,
  readManifest,
} from '../../src/engines/nsfw/models/manifest.ts'
import { chooseInt8, hasVnni } from '../../src/engines/nsfw/models/open-models.ts'
import { InferenceSession, Tensor } from '../../src/engines/nsfw/onnxruntime.ts'

const manifest = await readManifest()
const int8 = await chooseInt8()

const converted = new Map<string, Promise<Buffer>>()

/** Converts each model once for all tests. */
function convertOnce(name: ModelName, encoding: Encoding): Promise<Buffer> {
  const key = `${name} ${encoding}`
  const bytes = converted.get(key) ?? convert(name, encoding)
  converted.set(key, bytes)
  return bytes
}

for (const name of modelNames) {
  for (const encoding of encodings) {
    test(`converting ${name} to ${encoding} gives the bytes of the manifest`, async () => {
      const bytes = await convertOnce(name, encoding)
      const wanted = manifest.models.find((model) => model.name === name && model.encoding === encoding)
      assert.equal(createHash('sha256').update(bytes).digest('hex'), wanted?.sha256)
      assert.equal(bytes.length, wanted?.bytes)
    })
  }

  test(`${name} says the same in bytes as in floats, but for what rounding does`, async () => {
    for (const pixels of newPictures(name)) {
      const [floats, bytes] = [await score(name, 'fp32', pixels), await score(name, int8, pixels)]
      assert.ok(Math.abs(floats.reduce((sum, score) => sum + score, 0) - 1) < 1e-5)
      assert.ok(Math.abs(toClean(floats) - toClean(bytes)) < 0.05, `${floats} ${bytes}`)
    }
  })
}

test('signed and unsigned weights give the same scores where the processor can sum both', {
  skip: int8 === 'uint8',
}, async () => {
  for (const pixels of newPictures('mobilenet-v2-mid')) {
    const signed = await score('mobilenet-v2-mid', 'int8', pixels)
    assert.deepEqual(await score('mobilenet-v2-mid', 'uint8', pixels), signed)
  }
})

test('signed weights are for processors that all have VNNI', () => {
  const line = (flags: string) => `processor\t: 0\nflags\t\t: fpu ${flags} sse\n\n`
  assert.equal(hasVnni(line('avx512_vnni') + line('avx512_vnni')), true)
  assert.equal(hasVnni(line('avx_vnni')), true)
  assert.equal(hasVnni(line('avx512_vnni') + line('avx2')), false)
  assert.equal(hasVnni(line('avx2 avx512_vnni_like')), false)
  assert.equal(hasVnni(''), false)
})

/** The sum of Drawing and Neutral, because the models disagree about which of both a plain field is. */
const toClean = ([drawing = 0, , neutral = 0]: number[]) => drawing + neutral

const sides = { 'mobilenet-v2-mid': 224, 'inception-v3': 299 }
const sessions = new Map<string, Promise<InferenceSession>>()

async function score(name: ModelName, encoding: Encoding, pixels: Uint8Array): Promise<number[]> {
  const key = `${name} ${encoding}`
  const open = async () => InferenceSession.create(await convertOnce(name, encoding), { intraOpNumThreads: 1 })
  const session = sessions.get(key) ?? open()
  sessions.set(key, session)
  const side = sides[name]
  const { scores } = await (await session).run({ pixels: new Tensor('uint8', pixels, [1, side, side, 3]) })
  assert.ok(scores)
  return Array.from(scores.data as Float32Array)
}

/** Three pictures: a gradient, stripes and a field of one colour. */
function newPictures(name: ModelName): Uint8Array[] {
  const side = sides[name]
  const draw = (colour: (x: number, y: number, channel: number) => number) =>
    Uint8Array.from({ length: side * side * 3 }, (_, i) => {
      const pixel = Math.floor(i / 3)
      return colour(pixel % side, Math.floor(pixel / side), i % 3)
    })
  return [
    draw((x, y, channel) => ((channel === 0 ? x : y) * 255) / side),
    draw((x, _, channel) => ((x >> 4) % 2 === 0 ? 230 : 40 * channel)),
    draw((_x, _y, channel) => [200, 160, 140][channel] ?? 0),
  ]
}

/** The values of a kernel, channel by channel. */
function toValues({ values, zero, scales }: Parameters<typeof centreKernel>[0]): number[] {
  const perChannel = values.length / scales.length
  return Array.from(values, (byte, i) => (byte - zero) * (scales[Math.floor(i / perChannel)] ?? 0))
}

test('a channel that fits has the same values after its zero was moved to the middle', () => {
  const shipped = { values: Uint8Array.of(0, 60, 187, 59, 61, 100), zero: 60, scales: Float64Array.of(0.5, 2) }
  const centred = centreKernel(shipped)
  assert.equal(centred.zero, 128)
  assert.deepEqual(toValues(centred), toValues(shipped))
})

test('a channel that reaches too far is rounded to wider steps, and its neighbour is not', () => {
  const shipped = { values: Uint8Array.of(0, 7, 199, 255, 199, 210), zero: 199, scales: Float64Array.of(0.5, 0.5) }
  const centred = centreKernel(shipped)
  const [before, after] = [toValues(shipped), toValues(centred)]
  assert.deepEqual(after.slice(3), before.slice(3))
  const step = (199 / 127) * 0.5
  for (const [i, value] of before.entries()) assert.ok(Math.abs(value - (after[i] ?? 0)) <= step / 2, `${i}`)
  assert.ok(centred.values.every((byte) => byte >= 1))
})
