import { readFileSync } from 'node:fs'

/** A table such as `[[engines]]` of assay.toml, and where it stands: `assay.toml line 12`. */
export type TomlTable = { readonly origin: string; readonly values: Readonly<Record<string, unknown>> }

type Range = { min: number; max: number; fallback: number }

/**
 * Reads the options of one table; `noun` names in messages what it describes. A wrong value adds a sentence to
 * `mistakes` and returns undefined, or the fallback, so that all mistakes are reported at once. `finish` reports
 * options that no function has asked for.
 */
export function makeOptionReader(table: TomlTable, mistakes: string[], noun: 'engine' | 'listener') {
  const access = makeAccess(table, mistakes, noun)
  const { find, note, read, text, readNamedFile } = access

  return {
    /** Adds a mistake that concerns one option: `must be ...`. */
    note,
    has: (option: string): boolean => find(option) !== undefined,
    /** A text, undefined when it is not set. */
    text,
    /** Like `text`, for an option without which nothing works. `example` completes "add option = ...". */
    requireText(option: string, example: string, form?: RegExp, must?: string): string {
      if (find(option) === undefined) note(option, `is missing: add ${option} = ${example}`)
      return text(option, form, must) ?? ''
    },
    oneOf<const T extends string>(option: string, choices: readonly T[], fallback: T): T {
      const must = `must be one of ${choices.join(', ')}`
      return read(option, must, (value) => choices.find((choice) => choice === value)) ?? fallback
    },
    flag(option: string, fallback: boolean): boolean {
      const must = 'must be true or false'
      return read(option, must, (value) => (typeof value === 'boolean' ? value : undefined)) ?? fallback
    },
    wholeNumber(option: string, { min, max, fallback }: Range): number {
      const isWithin = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
      const must = `must be a whole number from ${min} to ${max}`
      return read(option, must, (value) => (isWithin(value) ? Number(value) : undefined)) ?? fallback
    },
    /** A number that need not be whole, such as a weight. */
    number(option: string, { min, max, fallback }: Range): number {
      const isWithin = (value: unknown) => typeof value === 'number' && value >= min && value <= max
      const must = `must be a number from ${min} to ${max}`
      return read(option, must, (value) => (isWithin(value) ? Number(value) : undefined)) ?? fallback
    },
    /** A duration such as `500ms`, `30s` or `2m`, in milliseconds. */
    duration(option: string, { min, max, fallback }: Range): number {
      const must = `must be a duration such as 500ms, 30s or 2m, from ${min} ms to ${max / 1000} s`
      const parse = (value: unknown) => {
        const ms = toMilliseconds(value)
        return ms >= min && ms <= max ? ms : undefined
      }
      return read(option, must, parse) ?? fallback
    },
    /** A list of whole numbers, without any twice. */
    wholeNumbers(option: string, { min, max, fallback }: { min: number; max: number; fallback: number[] }): number[] {
      const isWithin = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
      const must = `must be a list of whole numbers from ${min} to ${max}`
      const found = read(option, must, (value) =>
        Array.isArray(value) && value.length > 0 && value.every(isWithin) ? (value as number[]) : undefined,
      )
      return found ?? fallback
    },
    /** A list of texts. */
    texts(option: string, form: RegExp, must: string): string[] | undefined {
      const isText = (value: unknown) => typeof value === 'string' && form.test(value)
      return read(option, must, (value) =>
        Array.isArray(value) && value.length > 0 && value.every(isText) ? (value as string[]) : undefined,
      )
    },
    /** A regular expression. */
    pattern<F extends RegExp | undefined>(option: string, fallback: F): RegExp | F {
      const must = 'must be a regular expression, best in single quotes'
      return read(option, must, (value) => (typeof value === 'string' ? toPattern(value) : undefined)) ?? fallback
    },
    /** The content of a file that the option names, such as a certificate. */
    file(option: string): string | undefined {
      const path = text(option)
      return path === undefined ? undefined : readNamedFile(option, path)
    },
    /** A secret: the option itself, or the file that `<option>_file` names, whose last line end does not count. */
    secret(option: string, form: RegExp, must: string): string | undefined {
      const value = find(option)
      const path = text(`${option}_file`)
      if (value !== undefined && path !== undefined) note(option, `and ${option}_file exclude each other: keep one`)
      const fromFile = path === undefined ? undefined : readNamedFile(`${option}_file`, path)
      const secret = value ?? fromFile?.replace(/\r?\n$/, '')
      if (secret === undefined || (typeof secret === 'string' && form.test(secret))) return secret
      note(value === undefined ? `${option}_file` : option, `${must}. The value is not shown`)
      return undefined
    },
    finish: access.finish,
  }
}

export type OptionReader = ReturnType<typeof makeOptionReader>

/** Finds values and remembers for which options it was asked. */
function makeAccess({ origin, values }: TomlTable, mistakes: string[], noun: string) {
  const asked = new Set<string>()
  const { name } = values
  const place = typeof name === 'string' ? `${origin}: ${noun} ${JSON.stringify(name)}` : `${origin}: ${noun}`

  function note(option: string, sentence: string) {
    mistakes.push(`${place}: ${option} ${sentence}.`)
  }

  function find(option: string): unknown {
    asked.add(option)
    return values[option]
  }

  function read<T>(option: string, must: string, parse: (value: unknown) => T | undefined): T | undefined {
    const value = find(option)
    if (value === undefined) return undefined
    const parsed = parse(value)
    if (parsed === undefined) note(option, `${must}. Given: ${JSON.stringify(value)}`)
    return parsed
  }

  return {
    note,
    find,
    read,
    text: (option: string, form = /\S/, must = 'must be a text that is not empty') =>
      read(option, must, (value) => (typeof value === 'string' && form.test(value) ? value : undefined)),
    readNamedFile(option: string, path: string): string | undefined {
      try {
        return readFileSync(path, 'utf8')
      } catch (error) {
        note(option, `names a file that cannot be read: ${(error as Error).message}`)
        return undefined
      }
    },
    finish() {
      const unknown = Object.keys(values).filter((option) => !asked.has(option))
      const known = [...asked].toSorted().join(', ')
      for (const option of unknown) note(option, `is not an option of this kind of ${noun}. Its options: ${known}`)
    },
  }
}

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

function toMilliseconds(value: unknown): number {
  const [, digits, unit = ''] = /^(\d{1,7})(ms|s|m|h)$/.exec(String(value)) ?? []
  return Number(digits) * (unitMs[unit] ?? Number.NaN)
}

function toPattern(text: string): RegExp | undefined {
  try {
    return text === '' ? undefined : new RegExp(text, 'u')
  } catch {
    return undefined
  }
}
