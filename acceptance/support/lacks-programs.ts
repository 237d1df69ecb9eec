import { spawnSync } from 'node:child_process'

/** Returns the reason to skip tests that use these programs, or false. As root `npm test` installs some. */
export function lacksPrograms(...names: string[]): string | false {
  const lacking = names.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  return lacking.length > 0 && `not installed: ${lacking.join(', ')}`
}
