import { join } from 'node:path'

const bundles = process.env.ASSAY_TEST_BUNDLES
const library = bundles === undefined ? 'typebox/schema' : join(bundles, 'commands', 'schema-check.js')

/** Tells whether a value has the form of a schema. */
export const { Check }: typeof import('typebox/schema') = await import(library)
