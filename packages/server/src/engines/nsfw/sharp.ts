import { createRequire } from 'node:module'

/** An import would take the build of ES modules, with which Node analyses and loads more: 20 ms of each start. */
export const sharp: typeof import('sharp').default = createRequire(import.meta.url)('sharp')
