import { webcrypto } from 'node:crypto'
import type { Subtle } from '../verify-webhook.ts'

/** Node 18 has it, but not as a global. */
export const subtle = webcrypto.subtle as Subtle
