import { tmpdir } from 'node:os'

/** Where data directories of services and databases are made: in memory if the test run has a place there. */
export const dataRoot = process.env.ASSAY_TEST_MEMORY_DIR || tmpdir()
