import { archiveExtractors } from './archive-extractors.ts'
import { contentExtractors } from './content-extractors.ts'
import type { Extractor } from './form.ts'

/** All programs that try to get the payload out of a sample. */
export const extractors: Extractor[] = [...archiveExtractors, ...contentExtractors]
