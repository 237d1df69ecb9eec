import type { Case } from '../case.ts'
import { submitLarge, whatIsSubmitted } from '../large-submits.ts'

export const soak: Case = { about: whatIsSubmitted, run: () => submitLarge({}) }
