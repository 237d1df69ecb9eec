import { type Layer, type Network, picture } from './network.ts'

/** The least and the greatest value that each layer gave for the pictures it was measured with. */
export type Ranges = Record<string, [least: number, greatest: number]>

/** A byte stands for `(byte - zero) * scale`. */
export type Step = { scale: number; zero: number }

/**
 * The step of the bytes of each layer up to the means. Pools share theirs with what they take, and the inputs of a
 * concatenation with it: they are rounded to its step at once rather than first to one of their own. Only a pool that
 * goes into a concatenation keeps its own, which may be finer. A concatenation whose means are taken has none: the means
 * are those of its inputs.
 */
export function toSteps({ layers, pixelScale, pixelOffset }: Network, ranges: Ranges): Map<string, Step> {
  const end = layers.findIndex(({ kind }) => kind === 'mean')
  const rounded = new Map(layers.slice(0, end).map((layer) => [layer.name, layer]))
  const means = layers[end]
  const isApart = (name: string): boolean => means?.kind === 'mean' && isPartOf(name, means.input, rounded)
  const groups = new Map<string, string[]>([...rounded.keys()].map((name) => [name, [name]]))
  const join = (name: string, other: string) => {
    const [group = [], others = []] = [groups.get(name), groups.get(other)]
    if (group === others) return
    const all = [...group, ...others]
    for (const each of all) groups.set(each, all)
  }
  for (const layer of rounded.values()) {
    if (layer.kind === 'concat' && !isApart(layer.name)) {
      for (const input of layer.inputs) if (rounded.get(input)?.kind !== 'maxPool') join(layer.name, input)
    }
    if (layer.kind === 'maxPool' || layer.kind === 'averagePool') join(layer.name, layer.input)
  }
  const steps = new Map<string, Step>()
  for (const [name, group] of groups) steps.set(name, toStep(group.map((each) => getRange(ranges, each))))
  steps.set(picture, { scale: pixelScale, zero: Math.round(-pixelOffset / pixelScale) })
  return steps
}

/** The layers that a concatenation, of concatenations perhaps, is made of. */
export function listParts(name: string, layers: Map<string, Layer>): string[] {
  const layer = layers.get(name)
  return layer?.kind === 'concat' ? layer.inputs.flatMap((input) => listParts(input, layers)) : [name]
}

function isPartOf(name: string, whole: string, layers: Map<string, Layer>): boolean {
  if (name === whole) return true
  const layer = layers.get(whole)
  return layer?.kind === 'concat' && layer.inputs.some((input) => isPartOf(name, input, layers))
}

/** Always with zero in it, which is what pads a picture and what activations cut at. */
function toStep(group: [number, number][]): Step {
  const least = Math.min(0, ...group.map(([value]) => value))
  const greatest = Math.max(0, ...group.map(([, value]) => value))
  const scale = Math.fround((greatest - least) / 255)
  return { scale, zero: Math.round(-least / scale) }
}

function getRange(ranges: Ranges, name: Layer['name']): [number, number] {
  const range = ranges[name]
  if (range === undefined) throw new Error(`There is no range for the layer ${name}`)
  return range
}
