import { cpSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dataRoot } from './data-root.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

/** Makes a directory with the parts of the repository that documents use, in which their commands may write files. */
export function makeReadersDirectory(): string {
  const dir = realpathSync(mkdtempSync(join(dataRoot, 'assay-reader-')))
  mkdirSync(join(dir, 'node_modules', '@assay'), { recursive: true })
  for (const name of ['node_modules/@assay/client', 'node_modules/.bin', 'packages', 'scripts'])
    symlinkSync(join(repository, name), join(dir, name))
  for (const name of ['docs/test-images', 'packaging', 'package.json'])
    cpSync(join(repository, name), join(dir, name), { recursive: true })
  // Without a terminal curl would print a progress bar.
  writeFileSync(join(dir, '.curlrc'), 'silent\nshow-error\n')
  return dir
}

/** Environment of a reader, with the Node of the lockfile. */
export const toReadersEnvironment = (dir: string): NodeJS.ProcessEnv => ({
  ...process.env,
  ASSAY_DATA_DIR: '',
  CURL_HOME: dir,
  PATH: [join(dir, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
})
