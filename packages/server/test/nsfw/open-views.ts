import { type OpenOptions, openPicture, type Unscanned, type View } from '../../src/engines/nsfw/pixels/open-picture.ts'
import { Refusal } from '../../src/engines/nsfw/pixels/render.ts'

export type Opened = { views: View[]; isAnimated: boolean; framesTotal: number }

/** Decodes all views of a picture, or returns the reason why one of them cannot be decoded. */
export async function openViews(bytes: Buffer, options: OpenOptions = {}): Promise<Opened | Unscanned> {
  const picture = await openPicture(bytes, options)
  if ('unscanned' in picture) return picture
  const { isAnimated, framesTotal } = picture
  const views: View[] = []
  try {
    for await (const pass of picture.passes()) views.push(...pass.views)
  } catch (error) {
    if (error instanceof Refusal) return { unscanned: error.unscanned, reason: error.message }
    throw error
  }
  return { views, isAnimated, framesTotal }
}
