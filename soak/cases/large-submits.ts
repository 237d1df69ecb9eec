import type { Case } from '../case.ts'
import { submitDescription, submitLarge } from '../large-submits.ts'

export const soak: Case = { about: submitDescription, run: () => submitLarge({}) }
