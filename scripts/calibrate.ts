import { writeFile } from 'node:fs/promises'
import { readPixels } from '../bench/src/nsfw-pixels.ts'
import { readNetwork, toRangesPath } from '../packages/server/src/engines/nsfw/models/convert.ts'
import type { Ranges } from '../packages/server/src/engines/nsfw/models/int8-onnx.ts'
import { type ModelName, modelNames } from '../packages/server/src/engines/nsfw/models/manifest.ts'
import type { Network } from '../packages/server/src/engines/nsfw/models/model.ts'
import { toFloatOnnx } from '../packages/server/src/engines/nsfw/models/onnx.ts'
import { InferenceSession, Tensor } from '../packages/server/src/engines/nsfw/onnxruntime.ts'
import { collectNeutralPictures } from './neutral-pictures.ts'

/**
 * `node scripts/calibrate.ts [model]` measures the range of each layer's output over neutral pictures and writes
 * the ranges from which the 8-bit models are made. The models change with them, and so do their checksums:
 * run `npm run models -- --write-manifest` next.
 */
// Every fourth picture is measured; the others show whether the ranges also hold for unseen pictures.
const pictures = (await collectNeutralPictures()).filter((_, i) => i % 4 === 0)
for (const name of process.argv.length > 2 ? (process.argv.slice(2) as ModelName[]) : modelNames) {
  const ranges = await measure(name, await readNetwork(name))
  const lines = Object.entries(ranges).map(([layer, range]) => `  ${JSON.stringify(layer)}: [${range.join(', ')}]`)
  await writeFile(toRangesPath(name), `{\n${lines.join(',\n')}\n}\n`)
  process.stdout.write(`${name}: ${lines.length} ranges from ${pictures.length} pictures\n`)
}

async function measure(name: ModelName, network: Network): Promise<Ranges> {
  const session = await InferenceSession.create(toFloatOnnx(network, { withRanges: true }))
  const layers = network.layers.filter(({ kind }) => kind !== 'dense' && kind !== 'mean').map((layer) => layer.name)
  const extremes = new Map(layers.map((layer) => [layer, { least: [] as number[], greatest: [] as number[] }]))
  for (const path of pictures) {
    const pixels = await readPixels(path, name)
    const found = await session.run({ pixels: new Tensor('uint8', pixels, [1, network.size, network.size, 3]) })
    for (const [layer, { least, greatest }] of extremes) {
      least.push(Number(found[`${layer}:min`]?.data[0]))
      greatest.push(Number(found[`${layer}:max`]?.data[0]))
    }
  }
  await session.release()
  const ranges = [...extremes].map(([layer, { least, greatest }]) => {
    return [layer, [-getPercentile(least.map((value) => -value)), getPercentile(greatest)]]
  })
  return Object.fromEntries(ranges)
}

/**
 * Returns the 90th percentile. One picture in ten loses its peaks, but the other nine have finer steps: with the
 * maximum, InceptionV3 was off by 0.025 in one score of twenty; with the percentile, by 0.014.
 */
function getPercentile(values: number[]): number {
  const usual = values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.9)] ?? Number.NaN
  // Three digits are enough: another set of pictures changes the third.
  return Number(Math.max(0, usual).toPrecision(4))
}
