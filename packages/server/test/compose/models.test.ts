import assert from 'node:assert/strict'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pino } from 'pino'
import sharp from 'sharp'
import { evaluateModels } from '../../src/compose/evaluate-models.ts'
import { findChosenModels, openImages } from '../../src/compose/images.ts'
import { makeModels } from '../../src/compose/models.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { listImagePids, toContent } from '../nsfw/engine-support.ts'
import { type Fields, makeVit, vitManifest, writeModel } from '../nsfw/own-model-samples.ts'
import { waitFor } from '../support/wait-for.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-own-models-'))
chmodSync(dir, 0o755)
after(() => rmSync(dir, { recursive: true, force: true }))

const log = pino({ level: 'silent' })
const { signal } = new AbortController()
const audited = { atomically: <T>(work: () => Promise<T>) => work(), note: async () => {} }
const load = (settings: Record<string, string> = {}) =>
  loadConfig({ ASSAY_DATA_DIR: join(dir, 'data'), ASSAY_NSFW_PROFILE: 'fast', ASSAY_NSFW_PROCESSES: '1', ...settings })
    .config
let count = 0
const write = (fields: Fields = {}, seed = 1) => writeModel(join(dir, `model-${++count}`), makeVit(seed), fields)

const newColour = (background: string) =>
  sharp({ create: { width: 90, height: 60, channels: 3, background } })
    .png()
    .toBuffer()
const red = await newColour('#e01010')

test('a running service opens a model when it is added or changed, and keeps the previous one when it is broken', async () => {
  const config = load({ ASSAY_NSFW_FIRST_MODEL: 'tiny-vit' })
  const images = await openImages(config, { log })
  try {
    const assess = () =>
      images.images.assess(toContent(red), { flagsSexy: true, accountId: null }).then(
        ({ status, metadata }) => `${status} by ${metadata.engine_versions}`,
        () => 'failed',
      )
    assert.match(images.findFault() ?? '', /NSFW image scans answer 500 and are not charged: There is no .*tiny-vit/)
    assert.equal(await assess(), 'failed')

    const models = makeModels(config, { log, signal })
    await models.add(write(), audited)
    await waitFor(() => images.findFault() === undefined)
    assert.equal(await assess(), 'threat by tiny-vit 1')

    const placed = join(dir, 'data', 'models', 'tiny-vit')
    writeFileSync(join(placed, 'manifest.json'), '{ "name": "tiny-vit", "run": "rm -rf /" }')
    await waitFor(() => images.findFault() !== undefined)
    assert.match(images.findFault() ?? '', /^An image model is refused: .*"run".* The previous model stays in use\.$/)
    assert.equal(await assess(), 'threat by tiny-vit 1')

    // Sound by its manifest, but its process cannot open it.
    const onnx = Buffer.from('not a model')
    cpSync(writeModel(join(dir, 'broken'), onnx, { version: '2' }), placed, { recursive: true })
    await waitFor(() => images.findFault()?.includes('image engine') === true)
    assert.match(images.findFault() ?? '', /^An image model is refused: .* The previous model stays in use\.$/)
    assert.equal(await assess(), 'threat by tiny-vit 1')

    await models.add(write({ version: '3' }, 2), audited)
    await waitFor(() => images.findFault() === undefined)
    assert.equal(await assess(), 'threat by tiny-vit 3')
    await assert.rejects(models.remove('tiny-vit', audited), /ASSAY_NSFW_FIRST_MODEL names it/)
  } finally {
    await images.close()
  }
  assert.deepEqual(listImagePids(), [])
})

test('models are added after a trial, listed and removed, and a refused one leaves nothing', async () => {
  const config = load({ ASSAY_DATA_DIR: join(dir, 'other') })
  const models = makeModels(config, { log, signal })
  const own = async () => (await models.list()).filter(({ isOwn }) => isOwn)
  const three = { activation: 'softmax', labels: ['clean', 'sexy', 'pornography'] }
  await assert.rejects(models.add(write({ output: three }), audited), /tiny-vit is refused\. .*2 numbers/)
  await assert.rejects(models.add(write({ file: '../x.onnx' }), audited), /The model is refused: file must be/)
  await assert.rejects(models.add(join(dir, 'nowhere'), audited), /The model is refused: There is no/)
  const interrupted = makeModels(config, { log, signal: AbortSignal.abort() })
  await assert.rejects(interrupted.add(write(), audited), /Interrupted: no model was added/)
  const unaudited = { ...audited, note: () => Promise.reject(new Error('no entry today')) }
  await assert.rejects(models.add(write(), unaudited), /no entry today/)
  assert.deepEqual([await own(), readdirSync(join(dir, 'other', 'models'))], [[], []])

  await models.add(write({ licence: 'MIT' }), audited)
  mkdirSync(join(dir, 'other', 'models', 'empty'))
  assert.deepEqual(
    (await models.list()).map(({ name, use, manifest, fault }) => [name, use, manifest?.licence, fault?.slice(0, 11)]),
    [
      ['mobilenet-v2-mid', 'first', undefined, undefined],
      ['inception-v3', undefined, undefined, undefined],
      ['empty', undefined, undefined, 'There is no'],
      ['tiny-vit', undefined, 'MIT', undefined],
    ],
  )
  for (const name of ['../models', '.', 'mobilenet-v2-mid', 'none'])
    await assert.rejects(models.remove(name, audited), /There is no model .* that was added/)
  cpSync(join(dir, 'other', 'models', 'tiny-vit'), join(dir, 'other', 'models', 'renamed'), { recursive: true })
  await assert.rejects(findChosenModels(config, ['renamed'], { log }), /is that of a model tiny-vit/)
  await assert.rejects(findChosenModels(config, ['none'], { log }), /There is no model none on this node/)
  for (const name of ['empty', 'renamed', 'tiny-vit']) await models.remove(name, audited)
  assert.deepEqual(await own(), [])
})

test('models are compared on pictures of the operator', async () => {
  const config = load({ ASSAY_DATA_DIR: join(dir, 'compared') })
  const models = makeModels(config, { log, signal })
  await models.add(write(), audited)
  await models.add(
    write({ name: 'blind-eye', output: { ...vitManifest.output, labels: ['pornography', 'clean'] } }),
    audited,
  )
  const pictures = join(dir, 'pictures')
  mkdirSync(join(pictures, 'deep'), { recursive: true })
  writeFileSync(join(pictures, 'red.png'), red)
  writeFileSync(join(pictures, 'deep', 'green.png'), await newColour('#10e010'))
  writeFileSync(join(pictures, 'broken.jpg'), 'no picture')
  writeFileSync(join(pictures, 'notes.txt'), 'no picture')
  const names = ['tiny-vit', 'blind-eye']
  const options = { pictures, labels: undefined, models: names, rate: 0.005, log, signal }
  const progress: string[] = []
  const onProgress = (model: string, done: number, all: number) => progress.push(`${model} ${done}/${all}`)
  const { pictures: all, models: found, disagreements } = await evaluateModels(config, { ...options, onProgress })
  assert.equal(all, 3)
  assert.deepEqual(
    found.map(({ scanned, unscanned, falsePositives }) => [scanned, unscanned, falsePositives.map((p) => p.picture)]),
    [
      [2, ['broken.jpg'], ['red.png']],
      [2, ['broken.jpg'], ['deep/green.png']],
    ],
  )
  assert.deepEqual(disagreements.map(({ picture }) => picture).sort(), ['deep/green.png', 'red.png'])
  assert.deepEqual(progress.slice(-1), ['blind-eye 3/3'])

  const labels = join(dir, 'labels.csv')
  writeFileSync(labels, 'red.png,pornography\ndeep/green.png\tclean\r\n\n')
  const labelled = await evaluateModels(config, { ...options, labels, onProgress })
  assert.deepEqual(
    labelled.models.map(({ falsePositives, missed }) => [falsePositives.length, missed.length]),
    [
      [0, 0],
      [1, 1],
    ],
  )
  writeFileSync(labels, 'red.png,nsfw\n')
  await assert.rejects(evaluateModels(config, { ...options, labels, onProgress }), /Line 1 of .* is not a path/)
  writeFileSync(labels, 'blue.png,clean\n')
  await assert.rejects(
    evaluateModels(config, { ...options, labels, onProgress }),
    /names blue.png, which is no picture/,
  )

  const interrupt = new AbortController()
  const stopping = { ...options, signal: interrupt.signal, onProgress: () => interrupt.abort() }
  await assert.rejects(evaluateModels(config, stopping), /Interrupted/)
  assert.deepEqual(listImagePids(), [])
  assert.equal(existsSync(join(dir, 'compared', 'content')), false)
})
