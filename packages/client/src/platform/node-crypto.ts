import { webcrypto } from 'node:crypto'
import type { Subtle } from '../verify-webhook.ts'

/** WebCrypto of Node, which Node 18 does not provide as a global. */
export const subtle = webcrypto.subtle as Subtle
