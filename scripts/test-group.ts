import { describe } from 'node:test'

/** Runs several test files in this process, one after the other. Each is a suite, so that it keeps its hooks to itself. */
for (const file of (process.env.ASSAY_TEST_FILES ?? '').split(',')) {
  describe(file, async () => {
    await import(`../${file}`)
  })
}
