import { cpSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const repository = new URL('../../', import.meta.url).pathname

/** What of the repository the documents use, and room for what their commands make. Its `data` is where nothing else is. */
export function makeReadersDirectory(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'assay-reader-')))
  mkdirSync(join(dir, 'node_modules', '@assay'), { recursive: true })
  for (const name of ['node_modules/@assay/client', 'node_modules/.bin', 'packages', 'scripts'])
    symlinkSync(join(repository, name), join(dir, name))
  for (const name of ['docs/test-images', 'packaging', 'package.json'])
    cpSync(join(repository, name), join(dir, name), { recursive: true })
  // In a terminal curl draws no bar.
  writeFileSync(join(dir, '.curlrc'), 'silent\nshow-error\n')
  return dir
}

/** The Node of the lockfile, as a reader with a newer Node than the oldest that works. */
export const toReadersEnvironment = (dir: string): NodeJS.ProcessEnv => ({
  ...process.env,
  ASSAY_DATA_DIR: '',
  CURL_HOME: dir,
  PATH: [join(dir, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
})
