import { readPng } from './damaged-png.ts'
import type { FrameSource } from './frame-source.ts'
import { attempt, openSharp, type Raster, render, type Shape, type Source } from './render.ts'

/**
 * A picture of one frame. Each size is decoded from the bytes, because decoding small is cheaper than decoding once
 * for both; when both are sure to be asked for, `both` decodes once to twice the larger size.
 */
export function makeStillFrame(bytes: Buffer, options: { isPng: boolean; both: boolean }): FrameSource {
  const decode = <T>(work: (source: Source) => Promise<T>) =>
    options.isPng ? readPng({ bytes }, work) : work({ bytes })
  let shared: Promise<Source> | undefined
  const read = async (_first: number, _count: number, shape: Shape): Promise<Raster[]> => {
    if (!options.both) return [await decode((source) => render(source, shape))]
    shared ??= decode(decodeOnce)
    return [await render(await shared, shape)]
  }
  return { frames: 1, framesPerPass: 1, heldBytes: 0, read }
}

const sharedSide = 598

async function decodeOnce(source: Source): Promise<Source> {
  const pipeline = openSharp(source)
    .resize(sharedSide, sharedSide, { fit: 'fill', kernel: 'linear', withoutEnlargement: true })
    .toColourspace('srgb')
  const { data, info } = await attempt(() => pipeline.raw().toBuffer({ resolveWithObject: true }))
  return { bytes: data, options: { raw: { width: info.width, height: info.height, channels: info.channels } } }
}
