import type { ImageReport, Scores } from '../ports/engines.ts'
import type { Verdict } from './verdict.ts'

export type ImagePolicy = {
  /** From this much of what is not clean on, a picture is a threat. */
  threshold: number
  /** What is sexy counts as well. */
  flagsSexy: boolean
}

/** Chosen from what they did to neutral pictures: docs/decisions/0014-image-thresholds.md. */
export const imageThresholds = { strict: 0.5, default: 0.7, lenient: 0.85 }

export type ImageVerdict = Pick<Verdict, 'status' | 'signals'> & { metadata: Record<string, string> }

/**
 * The frame that is the least clean decides. Pornography and sexy are summed, because the models take one for the other
 * in one picture of twenty; the larger of the two gives the label.
 */
export function decideImage(report: ImageReport, { threshold, flagsSexy }: ImagePolicy): ImageVerdict {
  if ('unscanned' in report) return { status: 'error', signals: [`Error:${report.unscanned}`], metadata: {} }
  const toUnsafe = ({ pornography, sexy }: Scores) => pornography + (flagsSexy ? sexy : 0)
  const worst = report.frames.reduce((before, frame) => (toUnsafe(frame) > toUnsafe(before) ? frame : before))
  const isThreat = toUnsafe(worst) >= threshold
  const label = flagsSexy && worst.sexy > worst.pornography ? 'sexy' : 'pornography'
  return {
    status: isThreat ? 'threat' : 'clean',
    signals: isThreat ? [`Classification:${label}`] : [],
    metadata: {
      ...toDecimals(worst),
      ...(report.isAnimated
        ? { frames_scanned: String(countFrames(report.frames)), frame_index: String(worst.index) }
        : undefined),
    },
  }
}

/** A frame may have been looked at in more than one way: on white and on black. */
const countFrames = (frames: { index: number }[]) => new Set(frames.map(({ index }) => index)).size

const decimals = 4

/** Rounded so that they still sum to 1: what the other two leave is that of the largest. */
function toDecimals({ clean, pornography, sexy }: Scores): Record<string, string> {
  const whole = 10 ** decimals
  const units = [clean, pornography, sexy].map((score) => Math.round(score * whole))
  const largest = units.indexOf(Math.max(...units))
  units[largest] = whole - units.reduce((sum, unit, i) => (i === largest ? sum : sum + unit), 0)
  const [forClean, forPornography, forSexy] = units.map((unit) => (unit / whole).toFixed(decimals))
  return {
    classification_clean: forClean ?? '',
    classification_pornography: forPornography ?? '',
    classification_sexy: forSexy ?? '',
  }
}
