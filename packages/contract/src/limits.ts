/** The interface counts 1 MB as 1024 x 1024 bytes. */
const megabyte = 1024 * 1024

export type ScanKind = 'malware' | 'nsfw_image'
export type ScanMode = 'sync' | 'async'

export const maxContentBytes: Record<ScanKind, Record<ScanMode, number>> = {
  malware: { sync: 100 * megabyte, async: 250 * megabyte },
  nsfw_image: { sync: 8 * megabyte, async: 16 * megabyte },
}

export const maxFileNameLength = 255
/** Length of an Idempotency-Key in characters. */
export const maxKeyLength = 255
/** Longest `wait` that a request for a result may ask for. */
export const maxWaitSeconds = 30
export const maxUrlLength = 2048
export const maxJsonBytes = 64 * 1024
export const maxJsonDepth = 64
export const maxHeaderBytes = 32 * 1024

/** Largest credit limit of an account, which also means that the account has no limit. */
export const maxCredits = 2_000_000_000

/** Media types that the NSFW image endpoints accept, each with the file extensions allowed for it. */
export const imageFormats: Readonly<Record<string, readonly string[]>> = {
  'image/jpeg': ['.jpg', '.jpeg'],
  'image/png': ['.png'],
  'image/gif': ['.gif'],
  'image/webp': ['.webp'],
}
