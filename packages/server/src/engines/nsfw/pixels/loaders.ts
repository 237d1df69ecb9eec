import sharp from 'sharp'

const loaders = [
  'VipsForeignLoadJpegBuffer',
  'VipsForeignLoadPngBuffer',
  'VipsForeignLoadWebpBuffer',
  'VipsForeignLoadNsgifBuffer',
]

let isDone = false

/**
 * From here on libvips reads four formats in this process. Its own list of untrusted loaders leaves TIFF and AVIF open.
 * One thread, because a process decodes one picture; no cache, because it never sees the same operation again.
 */
export function allowFourLoaders() {
  // A second time would close them for a moment under a picture that is being decoded.
  if (isDone) return
  isDone = true
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: loaders })
  sharp.cache(false)
  sharp.concurrency(1)
}
