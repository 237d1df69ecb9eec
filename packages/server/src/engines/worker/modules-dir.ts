import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The `node_modules` that holds what `import.meta.resolve` found, and beside it the package with its native part. */
export function findModulesDir(resolved: string): string {
  const path = realpathSync(fileURLToPath(resolved))
  return join(path.slice(0, path.lastIndexOf('/node_modules/')), 'node_modules')
}
