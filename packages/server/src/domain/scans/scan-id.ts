import { v7 } from 'uuid'
import { drawRandom } from '../draw-random.ts'

/** A number that begins with the time, so that rows of one time lie together. */
export const newScanId = (): string => v7({ random: drawRandom(16) })
