import { readdirSync, readFileSync } from 'node:fs'

export type Migration = {
  name: string
  text: string
  /** The oldest version that works with what this migration makes: the number of the last migration that it knows. */
  serves: string
  /** The index that is built outside a transaction, so that nobody waits for it. */
  concurrently: string | undefined
}

const folder = new URL('./migrations/', import.meta.url)

/** In their order. A file says at its top what a migration is beside its text: `-- serves: 0005`. */
export function readMigrations(): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return files
    .sort()
    .map((file) => toMigration(file.slice(0, -'.sql'.length), readFileSync(new URL(file, folder), 'utf8')))
}

export const toNumber = (name: string) => name.slice(0, 4)

function toMigration(name: string, text: string): Migration {
  const find = (word: string) => new RegExp(`^-- ${word}: (\\w+)$`, 'm').exec(text)?.[1]
  // Without a word on it, older versions are kept away: they do not know what was changed.
  return { name, text, serves: find('serves') ?? toNumber(name), concurrently: find('concurrently') }
}
