import sharp from 'sharp'
import type { ModelName } from '../../packages/server/src/engines/nsfw/models/manifest.ts'

const inputs = {
  'mobilenet-v2-mid': { size: 224, kernel: 'linear' },
  'inception-v3': { size: 299, kernel: 'lanczos3' },
} as const

const decode = (path: string) =>
  sharp(path, { failOn: 'none' }).autoOrient().flatten({ background: 'white' }).toColourspace('srgb')

/** All pixels of the picture. */
export const readWhole = (path: string) => decode(path).removeAlpha().raw().toBuffer({ resolveWithObject: true })

/** The input of the model: red, green and blue bytes of the picture scaled to a square. */
export async function readPixels(path: string, name: ModelName): Promise<Uint8Array> {
  const { size, kernel } = inputs[name]
  return decode(path).resize(size, size, { fit: 'fill', kernel }).raw().toBuffer()
}
