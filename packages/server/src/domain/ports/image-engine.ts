import type { Content } from '../content/content.ts'
import type { EngineState } from './scan-engine.ts'

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
