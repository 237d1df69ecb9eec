// This package does not depend on the contract at run time; a test compares these values with the contract.

/** Largest content in bytes. Content over `sync` is scanned in the background, content over `async` not at all. */
export const limits = {
  malware: { sync: 100 * 1024 * 1024, async: 250 * 1024 * 1024 },
  nsfw: { sync: 8 * 1024 * 1024, async: 16 * 1024 * 1024 },
} as const

export type Kind = keyof typeof limits

export const maxNameLength = 255

/** File extensions that the service accepts for images. */
export const imageExtensions = ['.jpg', '.jpeg', '.png', '.gif', '.webp']

/** How long to wait for a background scan without --timeout. */
export const defaultWaitMs = 3_600_000
