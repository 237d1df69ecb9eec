/** MB means 1024 x 1024 bytes throughout the interface. */
const megabyte = 1024 * 1024

export type ScanKind = 'malware' | 'nsfw_image'
export type ScanMode = 'sync' | 'async'

export const maxContentBytes: Record<ScanKind, Record<ScanMode, number>> = {
  malware: { sync: 100 * megabyte, async: 250 * megabyte },
  nsfw_image: { sync: 8 * megabyte, async: 16 * megabyte },
}

export const maxFileNameLength = 255
/** Of an Idempotency-Key. */
export const maxKeyLength = 255
/** Seconds that fetching a result may wait for it. */
export const maxWaitSeconds = 30
export const maxUrlLength = 2048
export const maxJsonBytes = 64 * 1024
export const maxJsonDepth = 64
export const maxHeaderBytes = 32 * 1024

/** What the NSFW image endpoints accept, by the media type found in the content, with the extensions a name may carry. */
export const imageFormats: Readonly<Record<string, readonly string[]>> = {
  'image/jpeg': ['.jpg', '.jpeg'],
  'image/png': ['.png'],
  'image/gif': ['.gif'],
  'image/webp': ['.webp'],
}
