/** A table `[[engines]]` of assay.toml, and where it stands: `assay.toml line 12`. */
export type EngineTable = { readonly origin: string; readonly values: Readonly<Record<string, unknown>> }

const mustBeTables = 'must be tables: write [[engines]] on a line, and the options of one engine below it'

/**
 * Finds the tables `[[engines]]` in assay.toml. The engines themselves check their options, because each kind has its
 * own.
 */
export function readEngineTables(toml: { path: string; text: string; value: unknown }): EngineTable[] {
  if (toml.value === undefined) return []
  const isTable = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!Array.isArray(toml.value) || !toml.value.every(isTable))
    throw new Error(`${toml.path}: engines ${mustBeTables}.`)
  const lines = toml.text
    .split('\n')
    .flatMap((line, index) => (/^\s*\[\[\s*engines\s*\]\]/.test(line) ? [index + 1] : []))
  return toml.value.map((values, index) => ({
    origin: lines[index] === undefined ? toml.path : `${toml.path} line ${lines[index]}`,
    values,
  }))
}
