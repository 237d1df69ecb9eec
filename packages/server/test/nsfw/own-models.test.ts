import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import sharp from 'sharp'
import { makeSteeredJpeg } from '../../../../acceptance/support/steered-jpeg.ts'
import type { Scores } from '../../src/domain/ports/engines.ts'
import { openModel } from '../../src/engines/nsfw/child/open-model.ts'
import { type ImageEngineDeps, openImageEngine } from '../../src/engines/nsfw/image-engine.ts'
import { ModelRefused, parseOwnManifest } from '../../src/engines/nsfw/models/manifest.ts'
import type { Node, Tensor } from '../../src/engines/nsfw/models/onnx.ts'
import { draftOwnModel, listOwnModels, readOwnModel } from '../../src/engines/nsfw/models/own-models.ts'
import { listImagePids, noAbort, openTestModels, toContent } from './engine-support.ts'
import {
  type Fields,
  makeNoise,
  makeProbe,
  makeVit,
  side,
  toModel,
  vitManifest,
  writeModel,
} from './own-model-samples.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-own-models-'))
chmodSync(dir, 0o755)
after(() => rmSync(dir, { recursive: true, force: true }))
let count = 0
const write = (onnx: Buffer, fields?: Fields) => writeModel(join(dir, `model-${++count}`), onnx, fields)

const newColour = (background: string) =>
  sharp({ create: { width: 90, height: 60, channels: 3, background } })
    .png()
    .toBuffer()
const [red, green] = await Promise.all([newColour('#e01010'), newColour('#10e010')])

/** A JPEG that is red in full size and green at smaller ones. */
function makeSteered(side: number): Buffer {
  const toBlocks = (colour: number[]) => ({ side, pixels: Buffer.alloc(side * side * 3, Buffer.from(colour)) })
  return makeSteeredJpeg({ inFull: toBlocks([215, 40, 40]), small: toBlocks([40, 215, 40]) })
}

async function open(t: TestContext, models: ImageEngineDeps['models'], options: Partial<ImageEngineDeps> = {}) {
  const log = pino({ level: 'silent' })
  const engine = await openImageEngine({ models, profile: 'fast', processes: 1, log, ...options })
  t.after(() => engine.close())
  const classify = async (bytes: Buffer): Promise<Scores> => {
    const report = await engine.classify(toContent(bytes), noAbort)
    assert.ok('frames' in report, JSON.stringify(report))
    const [frame] = report.frames
    assert.ok(frame)
    return frame
  }
  return { engine, classify }
}

test('a vision transformer is the only model, or the first or second opinion beside a shipped one', async (t) => {
  const vit = await readOwnModel(write(makeVit()))
  const [shipped] = await openTestModels()
  assert.ok(shipped)
  const only = await open(t, [vit])
  const alone = await only.classify(red)
  assert.ok(alone.pornography > 0.9, `${alone.pornography}`)
  assert.ok((await only.classify(green)).clean > 0.9)
  // For this model, libvips decodes the file of 560 pixels at an eighth of its size, where it is green.
  const report = await only.engine.classify(toContent(makeSteered(70)), noAbort)
  assert.ok('frames' in report && report.frames.some(({ pornography }) => pornography > 0.9), 'red in full size only')
  assert.equal(only.engine.findState()?.version, 'tiny-vit 1')
  await only.engine.close()

  // The first view of a picture is scored at any price, and others are not compared.
  const budgetMs = { fast: 0, balanced: 0, thorough: 0 }
  const first = await open(t, [vit, shipped], { profile: 'thorough', budgetMs })
  assert.equal(first.engine.findState()?.version, 'nsfwjs MobileNetV2Mid int8; tiny-vit 1')
  const both = await first.classify(red)
  await first.engine.close()
  assert.ok(both.pornography < alone.pornography && both.pornography > 0.3, 'the mean of both opinions')

  const second = await open(t, [shipped, vit], { profile: 'balanced', suspicion: -1, budgetMs })
  assert.equal(second.engine.findState()?.version, 'nsfwjs MobileNetV2Mid int8; tiny-vit 1')
  assert.ok((await second.classify(red)).pornography > 0.4)
})

test('other weights, another threshold and another form are other versions of the verdict cache', async (t) => {
  const { input } = vitManifest
  const dirs = [
    write(makeVit()),
    write(makeVit(2)),
    write(makeVit(), { threshold: 0.3 }),
    write(makeVit(), { input: { ...input, resize: 'linear' } }),
  ]
  const versions = new Set<string | undefined>()
  const unsafe: number[] = []
  for (const each of dirs) {
    const { engine, classify } = await open(t, [await readOwnModel(each)])
    versions.add(engine.findState()?.verdictVersion)
    const { pornography, sexy } = await classify(red)
    unsafe.push(pornography + sexy)
    await engine.close()
  }
  assert.equal(versions.size, dirs.length)
  assert.ok((unsafe[2] ?? 0) > (unsafe[0] ?? 1), 'a lower threshold of the model means a higher score')
})

test('pixels arrive in the type, layout and range of the manifest, and labels are joined', async (t) => {
  const [mean, deviation] = [
    [0.1, 0.2, 0.3],
    [0.5, 0.25, 2],
  ]
  const toLogit = (value: number, channel: number) => (value / 255 - (mean[channel] ?? 0)) / (deviation[channel] ?? 1)
  const colour = [200, 120, 40]
  const logits = colour.map(toLogit)
  const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0)
  const [r = 0, g = 0, b = 0] = logits.map((logit) => Math.exp(logit) / sum)
  const picture = await newColour('rgb(200, 120, 40)')
  const input = { size: side, resize: 'linear', type: 'float32', mean, deviation }
  const labels = ['sexy', 'clean', 'pornography']
  for (const layout of ['NCHW', 'NHWC'] as const) {
    const fields = { input: { ...input, layout }, output: { activation: 'softmax', labels } }
    const { classify } = await open(t, [await readOwnModel(write(makeProbe({ type: 'float32', layout }), fields))])
    assertNear(await classify(picture), { sexy: r, clean: g, pornography: b })
  }
  const bytes = { size: side, resize: 'linear', type: 'uint8', layout: 'NCHW' }
  const output = { activation: 'none', labels: ['clean', 'clean', 'sexy'] }
  const model = await readOwnModel(write(makeProbe({ type: 'uint8', layout: 'NCHW' }), { input: bytes, output }))
  const { classify } = await open(t, [model])
  assertNear(await classify(picture), { clean: 322 / 363, sexy: 41 / 363, pornography: 0 })
})

function assertNear(found: Scores, wanted: Partial<Scores>) {
  for (const [label, score] of Object.entries(wanted))
    assert.ok(Math.abs(found[label as keyof Scores] - score) < 1e-3, `${label}: ${JSON.stringify(found)}, not ${score}`)
}

describe('a manifest is refused with a sentence', () => {
  const sound: Fields = { ...vitManifest, sha256: 'a'.repeat(64) }
  const { input, output } = vitManifest
  const mistakes: [fields: Fields, says: RegExp][] = [
    [{ name: '../../etc' }, /^name must be/],
    [{ name: 'inception-v3' }, /is the name of a model of Assay/],
    [{ name: 7 }, /^name must be/],
    [{ version: 'a; nsfwjs' }, /^version must be/],
    [{ licence: '' }, /^licence must be/],
    [{ licence: 'MIT\u001b[2J' }, /^licence must be/],
    [{ file: '../model.onnx' }, /^file must be/],
    [{ file: '/etc/passwd' }, /^file must be/],
    [{ sha256: 'abc' }, /^sha256 must be/],
    [{ treshold: 0.5 }, /the manifest has "treshold", which is not known/],
    [{ threshold: 1 }, /^threshold must be a number from 0.01 to 0.99/],
    [{ threshold: '0.5' }, /^threshold must be/],
    [{ input: undefined }, /^input must be an object/],
    [{ input: { ...input, size: 5000 } }, /^input.size must be/],
    [{ input: { ...input, size: 32.5 } }, /^input.size must be a whole number/],
    [{ input: { ...input, mean: [0, 0] } }, /^input.mean must list three/],
    [{ input: { ...input, deviation: [1, 0, 1] } }, /^input.deviation must be a number/],
    [{ input: { ...input, type: 'uint8' } }, /do not apply/],
    [{ input: { ...input, layout: 'HWC' } }, /^input.layout must be one of NHWC, NCHW/],
    [{ input: { ...input, resize: 'crop' } }, /^input.resize must be one of/],
    [{ output: { ...output, labels: [] } }, /^output.labels must list/],
    [{ output: { ...output, labels: ['clean', 'clean'] } }, /calls everything clean/],
    [{ output: { ...output, labels: ['clean', 'nsfw'] } }, /^output.labels\[1\] must be one of clean, sexy/],
    [{ output: [] }, /^output must be an object/],
  ]
  for (const [fields, says] of mistakes) {
    test(JSON.stringify(fields), () => {
      assert.throws(() => parseOwnManifest(JSON.stringify({ ...sound, ...fields })), { message: says })
    })
  }
  test('JSON that is none, or of another shape', () => {
    assert.doesNotThrow(() => parseOwnManifest(JSON.stringify(sound)))
    for (const text of ['', '{', 'null', '[]', '"manifest"', '['.repeat(60_000), '{"__proto__":{"name":"x"}}'])
      assert.throws(() => parseOwnManifest(text), { message: /manifest/ })
  })
})

test('a manifest with random changes is read or refused with a sentence', () => {
  const sound = Buffer.from(JSON.stringify({ ...vitManifest, sha256: 'a'.repeat(64) }))
  const next = makeNoise(7)
  let refused = 0
  for (let i = 0; i < 3000; i++) {
    const text = mutate(sound, next, 3).toString('utf8')
    try {
      parseOwnManifest(text)
    } catch (error) {
      assert.ok(error instanceof ModelRefused && error.message.endsWith('.'), `${error} for ${text}`)
      refused++
    }
  }
  assert.ok(refused > 1000)
})

test('a model with random changes works or is refused, and the next one is opened all the same', async (t) => {
  const sound = makeVit()
  const next = makeNoise(9)
  for (let i = 0; i < 5; i++) {
    const { engine } = await open(t, [await readOwnModel(write(mutate(sound, next, 40)))])
    if (engine.findFault() === undefined) await engine.classify(toContent(red), noAbort)
    else assert.match(engine.findFault() ?? '', /cannot be started: \S/)
    await engine.close()
  }
  const { classify } = await open(t, [await readOwnModel(write(sound))])
  assert.ok((await classify(red)).pornography > 0.9)
})

/** A copy in which `count` bytes are others. `next` gives numbers from -1 to 1. */
function mutate(bytes: Buffer, next: () => number, count: number): Buffer {
  const copy = Buffer.from(bytes)
  for (let i = 0; i < count; i++) copy[Math.floor(((next() + 1) / 2) * copy.length)] = Math.floor((next() + 1) * 128)
  return copy
}

test('files that are missing, too large, no files or others than the manifest says are refused', async () => {
  const missing = write(makeVit())
  rmSync(join(missing, 'model.onnx'))
  await assert.rejects(readOwnModel(missing), /There is no .*model.onnx/)
  const other = write(makeVit())
  writeFileSync(join(other, 'model.onnx'), makeVit(3))
  await assert.rejects(readOwnModel(other), /does not have the checksum/)
  const endless = write(makeVit())
  rmSync(join(endless, 'model.onnx'))
  symlinkSync('/dev/zero', join(endless, 'model.onnx'))
  await assert.rejects(readOwnModel(endless), /is not a file/)
  const long = write(makeVit())
  writeFileSync(join(long, 'manifest.json'), ' '.repeat(100_000))
  await assert.rejects(readOwnModel(long), /more than 65536 bytes/)
  await assert.rejects(readOwnModel(join(dir, 'nowhere')), /There is no .*manifest.json/)
})

describe('a model that does not work is refused with a sentence', () => {
  const toPort = (name: string) => ({ name, type: 'float' as const, shape: [1, 3, side, side] })
  const scalar = (name: string, value: number): Tensor => ({
    name,
    shape: [1, 2],
    values: new Float32Array(2).fill(value),
  })
  const mean: Node = { op: 'ReduceMean', inputs: ['pixels'], outputs: ['mean'], attributes: { keepdims: 0 } }
  const vit = makeVit()
  const column: Tensor = { name: 'column', shape: [16_000, 1], values: new Float32Array(16_000).fill(1) }
  const large: Node[] = [
    mean,
    { op: 'Mul', inputs: ['column', 'mean'], outputs: ['tall'] },
    { op: 'Transpose', inputs: ['tall'], outputs: ['wide'], attributes: { perm: [1, 0] } },
    { op: 'MatMul', inputs: ['tall', 'wide'], outputs: ['square'] },
    { op: 'ReduceMean', inputs: ['square'], outputs: ['one'], attributes: { keepdims: 0 } },
    { op: 'Mul', inputs: ['one', 'zero'], outputs: ['logits'] },
  ]
  /** With `options`, the model is tried by the process of an engine. */
  const tests: Record<string, { onnx: Buffer; fields?: Fields; says: RegExp; options?: Partial<ImageEngineDeps> }> = {
    'that is no ONNX': { onnx: Buffer.from('not a model at all'), says: /protobuf|parse|Load model/i, options: {} },
    'that is cut off': { onnx: vit.subarray(0, vit.length >> 1), says: /protobuf|parse|Load model/i },
    'of an unknown operator': {
      onnx: toModel({ nodes: [{ op: 'RunProgram', inputs: ['pixels'], outputs: ['logits'] }], tensors: [] }),
      says: /RunProgram/,
    },
    'of another size': { onnx: vit, fields: { input: { ...vitManifest.input, size: 64 } }, says: /dimension|shape/i },
    'of another number of labels': {
      onnx: vit,
      fields: { output: { activation: 'softmax', labels: ['clean', 'sexy', 'pornography'] } },
      says: /2 numbers, and the manifest names 3 labels/,
    },
    'of two inputs': {
      onnx: toModel({
        nodes: [{ op: 'Add', inputs: ['pixels', 'more'], outputs: ['logits'] }],
        tensors: [],
        inputs: [toPort('pixels'), toPort('more')],
        outputs: [toPort('logits')],
      }),
      says: /2 inputs/,
    },
    'whose output is not finite': {
      onnx: toModel({
        nodes: [mean, { op: 'Div', inputs: ['mean', 'zero'], outputs: ['logits'] }],
        tensors: [scalar('zero', 0)],
      }),
      says: /not finite/,
    },
    'that sees nothing': {
      onnx: toModel({
        nodes: [mean, { op: 'Mul', inputs: ['mean', 'zero'], outputs: ['logits'] }],
        tensors: [scalar('zero', 0)],
      }),
      says: /same scores/,
      options: {},
    },
    'that takes too much memory': {
      onnx: toModel({ nodes: large, tensors: [column, scalar('zero', 0)] }),
      says: /exceeded its limit of 400 MB|alloc/,
      options: { maxMemoryMb: 400, openProcessorMs: 60_000 },
    },
    'that takes too long': {
      onnx: toModel({ nodes: large, tensors: [column, scalar('zero', 0)] }),
      says: /exceeded its limit of 1 ms of processor time/,
      options: { maxMemoryMb: 8000, openProcessorMs: 1 },
    },
  }
  for (const [name, { onnx, fields, says, options }] of Object.entries(tests)) {
    test(name, async (t) => {
      const model = await readOwnModel(write(onnx, fields))
      // The function that image processes open a model with. Starting one for each model would take most of the time.
      if (options === undefined) return assert.rejects(openModel(model), says)
      const before = listImagePids()
      const { engine } = await open(t, [model], options)
      assert.match(engine.findFault() ?? '', /cannot be started: \S/)
      assert.match(engine.findFault() ?? '', says)
      await assert.rejects(engine.classify(toContent(red), noAbort))
      await engine.close()
      assert.deepEqual(listImagePids(), before, 'the process that tried the model is gone')
    })
  }
})

test('a model that takes too long for one picture is refused at its trial, and one within the limit is not', async () => {
  const vit = await readOwnModel(write(makeVit()))
  // The processor time of a run is above 0 in any case.
  await assert.rejects(openModel(vit, -1), /took \d+ ms of processor time for one picture; at most -1 are allowed/)
  const run = await openModel(vit)
  const { pornography } = await run(Buffer.alloc(side * side * 3))
  assert.ok(pornography >= 0 && pornography <= 1)
})

test('a model is placed at once, keeps its predecessor beside it, and leaves no draft behind', async () => {
  const models = join(dir, 'placed')
  const first = write(makeVit(), { source: 'https://example.com/vit' })
  const draft = await draftOwnModel(first, models, noAbort.signal)
  assert.deepEqual(await listOwnModels(models), [])
  await draft.place()
  assert.deepEqual(await readdir(models), ['tiny-vit'])
  const placed = join(models, 'tiny-vit')
  assert.equal((await stat(join(placed, `${draft.model.sha256}.onnx`))).mode & 0o777, 0o644)
  const [listed] = await listOwnModels(models)
  assert.deepEqual(listed?.manifest, draft.manifest)
  assert.equal((await readOwnModel(placed)).title, 'tiny-vit 1')
  for (const seed of [2, 3]) await (await draftOwnModel(write(makeVit(seed)), models, noAbort.signal)).place()
  assert.equal((await readdir(placed)).length, 3, 'the manifest, the model and its predecessor')
  const stopped = draftOwnModel(first, models, AbortSignal.abort())
  await assert.rejects(stopped, { name: 'AbortError' })
  const broken = write(makeVit())
  writeFileSync(join(broken, 'model.onnx'), readFileSync(join(broken, 'manifest.json')))
  await assert.rejects(draftOwnModel(broken, models, noAbort.signal), /checksum/)
  assert.deepEqual(await readdir(models), ['tiny-vit'])
})
