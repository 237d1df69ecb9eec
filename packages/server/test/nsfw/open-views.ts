import { smallShape } from '../../src/engines/nsfw/models/model.ts'
import { type OpenOptions, openPicture, type Unscanned, type View } from '../../src/engines/nsfw/pixels/open-picture.ts'
import { Refusal } from '../../src/engines/nsfw/pixels/render.ts'

/** A view with its square for the small model. */
export type OpenedView = View & { small: Buffer }

export type Opened = { views: OpenedView[]; isAnimated: boolean; framesTotal: number }

/** Decodes all views of a picture, or returns the reason why one of them cannot be decoded. */
export async function openViews(bytes: Buffer, options: OpenOptions = {}): Promise<Opened | Unscanned> {
  const picture = await openPicture(bytes, options)
  if ('unscanned' in picture) return picture
  const { isAnimated, framesTotal } = picture
  const views: OpenedView[] = []
  try {
    for await (const pass of picture.passes()) {
      for (const view of pass.views) views.push({ ...view, small: await view.render(smallShape) })
    }
  } catch (error) {
    if (error instanceof Refusal) return { unscanned: error.unscanned, reason: error.message }
    throw error
  }
  return { views, isAnimated, framesTotal }
}
