import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { openProfiles } from '../../scripts/open-profiles.ts'
import type { Row } from './results.ts'

type Animation = { name: string; width: number; height: number; frames: number; wanted: string; paint: Paint }
type Paint = (frame: number, x: number, y: number) => [red: number, green: number, blue: number]

const animations: Animation[] = [
  {
    name: 'a GIF of 100 frames of 480 x 270, a disc that moves',
    width: 480,
    height: 270,
    frames: 100,
    wanted: 'at most 1.2 s',
    paint: (frame, x, y) =>
      (x - 40 - frame * 4) ** 2 + (y - 135) ** 2 < 2500 ? [220, 180, 140] : [x >> 2, 100 + (y >> 2), 90],
  },
  {
    name: 'a GIF of 100 frames of 480 x 270, all of it moves',
    width: 480,
    height: 270,
    frames: 100,
    wanted: 'at most 1.2 s',
    paint: (frame, x, y) => {
      const [across, down] = [x + frame * 4, y + frame * 2]
      const wave = Math.sin(across / 23) + Math.sin(down / 31) + Math.sin((across + down) / 17)
      return [128 + 40 * wave, 128 - 30 * wave, 90 + 20 * Math.sin(across / 11)]
    },
  },
  {
    name: 'a GIF of 1,000 frames of 4 x 4, each of another colour',
    width: 4,
    height: 4,
    frames: 1000,
    wanted: 'under 5 s',
    paint: (frame) => [(frame * 37) & 255, (frame * 91) & 255, (frame * 13) & 255],
  },
]

/** Processor time of animations in the profile `balanced`, with the parts of their frames. */
export async function benchFrames(dir: string): Promise<Row[]> {
  const rows: Row[] = []
  // All are drawn before the models are opened, which turns off the reader of raw pixels.
  for (const animation of animations) await writeFile(join(dir, animation.name), await draw(animation))
  const [balanced] = await openProfiles(['balanced'])
  for (const { name, wanted } of animations) {
    const bytes = await readFile(join(dir, name))
    const { status, signals, ms } = (await balanced?.scan(bytes)) ?? { status: 'error', signals: [], ms: Number.NaN }
    const ours = `${(ms / 1000).toFixed(2)} s, ${[status, ...signals].join(' ')}`
    const what = `processor time of ${name}, ${Math.round(bytes.length / 1000)} KB`
    rows.push({ what, ours, against: '', ratio: undefined, wanted })
  }
  return rows
}

async function draw({ width, height, frames, paint }: Animation): Promise<Buffer> {
  const pixels = Buffer.alloc(width * height * frames * 3)
  for (let frame = 0, at = 0; frame < frames; frame++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++, at += 3) pixels.set(paint(frame, x, y), at)
    }
  }
  const raw = { width, height: height * frames, channels: 3 as const, pageHeight: height }
  return sharp(pixels, { raw }).gif({ effort: 1 }).toBuffer()
}
