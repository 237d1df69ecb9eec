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
