import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import sharp, { type Sharp } from 'sharp'
import { findChildren } from '../../../../acceptance/support/processes.ts'
import type { Content } from '../../src/domain/content/content.ts'
import { type ImageEngineDeps, openImageEngine } from '../../src/engines/nsfw/image-engine.ts'
import { builtDir } from '../../src/engines/nsfw/models/manifest.ts'
import type { Model } from '../../src/engines/nsfw/models/model.ts'
import { openModels } from '../../src/engines/nsfw/models/open-models.ts'
import { readOwnModel } from '../../src/engines/nsfw/models/own-models.ts'
import { makeVit, writeModel } from './own-model-samples.ts'

export const noAbort = new AbortController()

/** An engine that is closed with the test. `pids` lists its processes, without those that ran before. */
export async function openTestEngine(
  t: { after(close: () => Promise<void>): void },
  options: Partial<ImageEngineDeps> = {},
) {
  const others = new Set(listImagePids())
  const log = pino({ level: 'silent' })
  const models = options.models ?? (await openTestModels())
  const engine = await openImageEngine({ models, profile: 'fast', processes: 1, log, ...options })
  t.after(() => engine.close())
  return { engine, pids: () => listImagePids().filter((pid) => !others.has(pid)) }
}

/** A fixed picture: hills under a sky. */
export function newLandscape({ width = 640, height = 480 } = {}): Sharp {
  const pixels = Buffer.alloc(width * height * 3)
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 3) {
      const hill = height * (0.55 + 0.12 * Math.sin((x / width) * 9) + 0.05 * Math.sin((x / width) * 31))
      const shade = ((x * 7919 + y * 104_729) % 31) + (y / height) * 60
      const [red, green, blue] = y > hill ? [40 + shade, 90 + shade, 35] : [130 + shade, 170 + shade, 230]
      pixels[at] = red
      pixels[at + 1] = green
      pixels[at + 2] = blue
    }
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
}

/** A picture of the size that the first model takes, so that it is one view: this costs a twentieth of a landscape. */
export const newPicture = () => newLandscape({ width: 224, height: 224 }).jpeg().toBuffer()

/** Six frames of one colour each. */
export async function newAnimation(): Promise<Buffer> {
  const colours = ['#c02020', '#20c020', '#2020c0', '#c0c020', '#20c0c0', '#c020c0']
  const frames = colours.map((background) =>
    sharp({ create: { width: 64, height: 64, channels: 3, background } })
      .png()
      .toBuffer(),
  )
  return sharp(await Promise.all(frames), { join: { animated: true } })
    .gif()
    .toBuffer()
}

/** `during` runs each time the content is read, after its first half. */
export function toContent(bytes: Buffer, during?: (times: number) => void | Promise<void>): Content {
  let times = 0
  return {
    bytes: bytes.length,
    head: bytes.subarray(0, 64),
    sha1: '',
    sha256: '',
    isInMemory: during === undefined,
    whole: during === undefined ? bytes : undefined,
    async *read() {
      const half = bytes.length >> 1
      yield bytes.subarray(0, half)
      await during?.(++times)
      yield bytes.subarray(half)
    },
    async release() {},
  }
}

/** The image processes that this process has started. */
export const listImagePids = () => findChildren(process.pid, 'engines/nsfw/child/main.ts')

let opened: Promise<Model[]> | undefined

/** Both models as int8, converted now unless they were before. */
export function openTestModels(): Promise<Model[]> {
  opened ??= openModels({
    dirs: [builtDir],
    names: ['mobilenet-v2-mid', 'inception-v3'],
    precision: 'int8',
    log: pino({ level: 'warn' }),
  })
  return opened
}

/** A model of a few kilobytes, for tests of processes: one of ours takes longer to open than its process to start. */
export async function openTinyModel(t: { after(remove: () => void): void }): Promise<Model> {
  const dir = mkdtempSync(join(tmpdir(), 'assay-tiny-model-'))
  t.after(() => rmSync(dir, { recursive: true }))
  // The processes run as another user.
  chmodSync(dir, 0o755)
  return readOwnModel(writeModel(dir, makeVit()))
}
