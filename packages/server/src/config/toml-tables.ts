import type { TomlTable } from '../runtime/toml-options.ts'

/** Names of lists of tables in assay.toml, such as `[[engines]]`. */
export type TableName = 'engines' | 'listeners'

/**
 * Finds the tables of a name in assay.toml. Their options are checked by the parts that use them, because each kind of
 * engine or listener has its own.
 */
export function readTables(name: TableName, toml: { path: string; text: string; value: unknown }): TomlTable[] {
  if (toml.value === undefined) return []
  const isTable = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!Array.isArray(toml.value) || !toml.value.every(isTable)) {
    const must = `must be tables: write [[${name}]] on a line, and the options of one of them below it`
    throw new Error(`${toml.path}: ${name} ${must}.`)
  }
  const heading = new RegExp(`^\\s*\\[\\[\\s*${name}\\s*\\]\\]`)
  const lines = toml.text.split('\n').flatMap((line, index) => (heading.test(line) ? [index + 1] : []))
  return toml.value.map((values, index) => ({
    origin: lines[index] === undefined ? toml.path : `${toml.path} line ${lines[index]}`,
    values,
  }))
}
