import { spawnSync } from 'node:child_process'

/** A reason to skip what uses these programs, or false where all are there. `npm test` installs some of them where it may. */
export function lacksPrograms(...names: string[]): string | false {
  const lacking = names.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  return lacking.length > 0 && `not installed: ${lacking.join(', ')}`
}
