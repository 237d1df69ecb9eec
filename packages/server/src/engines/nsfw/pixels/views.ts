import type { Shape } from '../models/model.ts'
import type { Background } from './backgrounds.ts'

/** A view of a frame, as a viewer may show it. A transparent frame has several, such as on white and on black. */
export type View = {
  /** The frame's number in the picture, from 0. */
  index: number
  background: Background
  /** RGB, 8 bits, in the shape of a model. Any but the small one decodes again, unless it was prepared. */
  render(shape: Shape): Promise<Buffer>
  /** Parts of the view that may be pictures of their own. */
  readParts(options: PartOptions): Promise<Pass>
}

/** The views that one pass through the decoder gives. */
export type Pass = {
  views: View[]
  /** Decodes several views in a shape at once: one after the other, each would decode all frames before it. */
  prepare(views: View[], shape: Shape): Promise<void>
}

export type PartOptions = {
  /** Adds the view turned to each side, and tiles of a picture that is larger than what the models see. */
  isCloser: boolean
  /** Adds those tiles also when the view has other parts. */
  hasTilesBesideParts: boolean
}
