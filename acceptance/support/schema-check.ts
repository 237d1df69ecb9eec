import { createRequire } from 'node:module'
import { join } from 'node:path'

const bundles = process.env.ASSAY_TEST_BUNDLES
const library = bundles === undefined ? 'typebox/schema' : join(bundles, 'commands', 'schema-check.js')

/** Tells whether a value has the form of a schema. Loaded without `await`, with which files could share no process. */
export const { Check }: typeof import('typebox/schema') = createRequire(import.meta.url)(library)
