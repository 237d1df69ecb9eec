import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { collectNeutralPictures } from '../../scripts/neutral-pictures.ts'

type Source = { path: string; pixels: number; bytes: number }
type Shape = { width: number; height: number }
type Encode = (picture: ReturnType<typeof sharp>) => ReturnType<typeof sharp>

/** The usual quality of cameras and image programs. */
const toJpeg: Encode = (picture) => picture.jpeg({ quality: 85 })
/** The best quality, with many bytes per pixel. */
const heavyForms = {
  jpeg: { ending: 'jpg', encode: (picture) => picture.jpeg({ quality: 98 }) },
  progressive: { ending: 'jpg', encode: (picture) => picture.jpeg({ quality: 98, progressive: true }) },
  png: { ending: 'png', encode: (picture) => picture.png({ compressionLevel: 3 }) },
} satisfies Record<string, { ending: string; encode: Encode }>
/** Below the limit of the service. */
const maxPixels = 45_000_000
/** Bytes per pixel of a JPEG below which it is smoother than a photograph, such as a gradient or a drawing. */
const minBytesPerPixel = 0.1

/** Makes pictures from photographs and wallpapers of Debian, the same in every run. */
export async function openPictures(dir: string) {
  mkdirSync(dir, { recursive: true })
  const all = await listSources()
  const largest = all.filter(({ pixels }) => pixels >= 12_000_000)
  const heaviest = largest.toSorted((a, b) => b.bytes - a.bytes)

  return {
    /** Photographs of all kinds with this many pixels each. */
    make: (megapixels: number, count: number) => makeAll(takeSome(all, count), megapixels),
    /** Photographs that are at least as large as the largest picture made from them. */
    makeSharp: (megapixels: number, count: number) => makeAll(takeSome(largest, count), megapixels),
    /** Pictures of nearly this many bytes in the given formats. */
    async makeHeavy(bytes: number, forms: (keyof typeof heavyForms)[], count: number): Promise<string[]> {
      const files: string[] = []
      for (let i = 0; files.length < count; i++) {
        const [source, form] = [heaviest[Math.floor(i / forms.length)], forms[i % forms.length]]
        if (source === undefined || form === undefined) throw new Error(`There are not ${count} pictures of that size`)
        const { ending, encode } = heavyForms[form]
        const picture = await findFilling(source, bytes, encode)
        if (picture === undefined) continue
        const file = join(dir, `${files.length}-${bytes}-${form}.${ending}`)
        writeFileSync(file, picture)
        files.push(file)
      }
      return files
    },
  }

  async function makeAll(sources: Source[], megapixels: number): Promise<string[]> {
    const files: string[] = []
    for (const source of sources) {
      const file = join(dir, `${files.length}-${sources.length}-${megapixels}.jpg`)
      writeFileSync(file, await render(source, megapixels * 1e6, toJpeg))
      files.push(file)
    }
    return files
  }
}

async function listSources(): Promise<Source[]> {
  const sources: Source[] = []
  for (const path of await collectNeutralPictures()) {
    const { format, width, height } = await sharp(path).metadata()
    const [pixels, bytes] = [width * height, statSync(path).size]
    if (format === 'jpeg' && pixels >= 2_000_000 && bytes >= pixels * minBytesPerPixel) {
      sources.push({ path, pixels, bytes })
    }
  }
  return sources
}

/** Picks pictures at even distances. */
function takeSome<T>(list: T[], count: number): T[] {
  if (list.length < count) throw new Error(`There are ${list.length} pictures where ${count} are needed`)
  return Array.from({ length: count }, (_, i) => list[Math.floor((i * list.length) / count)] as T)
}

async function render({ path }: Source, pixels: number, encode: Encode): Promise<Buffer> {
  const { width, height } = toShape(await sharp(path).metadata(), pixels)
  return encode(sharp(path).resize(width, height, { fit: 'fill' })).toBuffer()
}

function toShape({ width, height }: Shape, pixels: number): Shape {
  const scale = Math.sqrt(pixels / (width * height))
  return { width: Math.round(width * scale), height: Math.round(height * scale) }
}

/** Encodes as many pixels as fit into the bytes, within a few per cent; undefined when there is too little detail. */
async function findFilling(source: Source, bytes: number, encode: Encode): Promise<Buffer | undefined> {
  let pixels = bytes
  for (let attempt = 0; attempt < 8; attempt++) {
    const picture = await render(source, pixels, encode)
    if (picture.length > bytes * 0.93 && picture.length <= bytes) return picture
    if (picture.length <= bytes && pixels === maxPixels) return undefined
    pixels = Math.min(maxPixels, Math.round((pixels * bytes * 0.97) / picture.length))
  }
  return undefined
}
