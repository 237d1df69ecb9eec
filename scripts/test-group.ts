import { describe } from 'node:test'

/** A file whose top-level await takes longer than this hangs: a database file opens its database within seconds. */
const importDeadlineMs = Number(process.env.ASSAY_TEST_IMPORT_DEADLINE_MS ?? 120_000)

let lastImport = Promise.resolve()

/**
 * Runs several test files in this process. All are imported first, then their tests run one file after the other. Each
 * file is a suite, so that it keeps its hooks to itself. The files are imported one at a time: those that wait for the
 * same module would register their tests in the suite of the first.
 */
for (const file of (process.env.ASSAY_TEST_FILES ?? '').split(',')) {
  describe(file, () => {
    const imported = lastImport.then(() => importInTime(file))
    lastImport = imported.catch(() => {})
    return imported
  })
}

async function importInTime(file: string) {
  const overdue = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    overdue.reject(new Error(`A top-level await of ${file} did not settle within ${importDeadlineMs} ms.`))
  }, importDeadlineMs)
  await Promise.race([import(`../${file}`), overdue.promise]).finally(() => clearTimeout(timer))
}
