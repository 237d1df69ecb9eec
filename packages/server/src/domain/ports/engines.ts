import type { Content } from '../content/content.ts'

/** Why content is not clean although nothing was found in it: some of it was not looked at. */
export type Doubt = 'EncryptedContent' | 'UnsupportedContainer' | 'ScanLimitExceeded'

export type EngineReport = {
  /** Names of what was found, without any prefix of ours. */
  findings: string[]
  doubts: Doubt[]
  /** The engine met a container that it cannot open, here or further inside. */
  unopened: boolean
}

export type EngineState = {
  /** `ClamAV 1.4.6` */
  version: string
  /**
   * Identifies everything that a verdict depends on: the engine, its settings and its signatures. The verdict cache keeps
   * results under it. Undefined when the engine cannot tell; then nothing is cached.
   */
  verdictVersion: string | undefined
  /** How many; undefined where the engine does not tell. */
  signatures: number | undefined
  signaturesAt: Date | undefined
}

/** What an engine decides on: malware in any content, or NSFW content in images. */
export type EngineKind = 'malware' | 'image'

export type ScanEngine = {
  name: string
  kind: 'malware'
  /** Looks into containers by itself. For one that does not, the members are unpacked and given to it. */
  opensContainers: boolean
  /** Undefined while it cannot scan. */
  findState(): EngineState | undefined
  /** All of the content was looked at, or this throws: `EngineDown` when the engine cannot answer. */
  scan(content: Content, signal: AbortSignal): Promise<EngineReport>
}

/** The engine died, hung or is away. Never a verdict. */
export class EngineDown extends Error {}

/** More is waiting than the engine takes in; it may have room in a moment. */
export class EngineBusy extends EngineDown {}

/** How sure the model is of each label; they sum to 1. */
export type Scores = { clean: number; pornography: number; sexy: number }

export type ImageReport =
  /**
   * Of every frame that was looked at, at least one; `index` counts all frames of the picture from 0. One that looks
   * different on white and on black is there twice.
   */
  | { frames: (Scores & { index: number })[]; isAnimated: boolean }
  /** It cannot be decoded, or takes more than we give. Not a verdict: what was not looked at is not clean. */
  | { unscanned: 'UnsupportedImage' | 'ScanLimitExceeded' }

export type ImageEngine = {
  name: string
  kind: 'image'
  /** Undefined while it cannot scan. */
  findState(): EngineState | undefined
  /** Throws `EngineDown` when it cannot answer. */
  classify(content: Content, signal: AbortSignal): Promise<ImageReport>
}

/**
 * The most that one scan unpacks, at all depths together. A single member can be that large, so ClamAV's own limits have
 * this value too: above a lower one it would answer OK for content that it did not read.
 */
export const maxUnpackedBytes = 1000 * 1024 * 1024

/** What may still be unpacked of one scan. Unpacking takes from it, at every depth. */
export type UnpackBudget = { members: number; bytes: number }

export type Unpacker = {
  /**
   * Gives each member of the container to `take`, one after the other; the next begins when `take` is done. Its path is
   * empty where there is no name, as in a file that is only compressed. Returns what could not be opened: empty means that
   * every byte of every member was given.
   */
  unpack(
    content: Content,
    options: {
      take(member: { path: string; bytes: AsyncIterable<Buffer> }): Promise<void>
      budget: UnpackBudget
      signal: AbortSignal
    },
  ): Promise<Doubt[]>
}
