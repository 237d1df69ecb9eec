/** Bytes. What is larger than `sync` is scanned in the background; a test compares these with those of the service. */
export const limits = {
  malware: { sync: 100 * 1024 * 1024, async: 250 * 1024 * 1024 },
  nsfw: { sync: 8 * 1024 * 1024, async: 16 * 1024 * 1024 },
} as const

export type Kind = keyof typeof limits
