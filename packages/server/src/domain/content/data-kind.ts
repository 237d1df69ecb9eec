/** JSON, lines of JSON or comma-separated values; undefined when the text is none of them. */
export function findDataKind(text: string, isWhole: boolean): string | undefined {
  // What can begin a JSON document; a settings file begins with `[name]`, and a thrown error costs 10 µs.
  if (/^\s*(\{\s*["}]|\[\s*["[{\]\d-]|\[\s*(true|false|null)\b)/.test(text)) {
    const json = findJson(text, isWhole)
    if (json !== undefined) return json
  }
  return isCsv(text) ? 'text/csv' : undefined
}

function findJson(text: string, isWhole: boolean): string | undefined {
  if (isWhole ? parses(text) : beginsLikeJson(text)) return 'application/json'
  const lines = text.split('\n')
  // The last line is empty, or cut.
  const whole = lines.slice(0, -1)
  return whole.length >= 2 && whole.every(parses) ? 'application/x-ndjson' : undefined
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const token = /\s*(?:([[{])|([\]}])|([:,])|("(?:[^"\\\n]|\\.)*")|(-?\d[\d.eE+-]*|true|false|null)(?=[\s,\]}]))/y

/** Whether the tokens of a cut text stand in an order that JSON allows. */
function beginsLikeJson(text: string): boolean {
  const open: string[] = []
  /** What may come next: a value, a key (a string in an object), a colon, or a comma. */
  let next: 'value' | 'key' | 'colon' | 'comma' = 'value'
  token.lastIndex = 0
  let end = 0
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    end = token.lastIndex
    const [, opening, closing, sign, string] = match
    const inObject = open.at(-1) === '{'
    if (opening !== undefined) {
      if (next !== 'value') return false
      open.push(opening)
      next = opening === '{' ? 'key' : 'value'
    } else if (closing !== undefined) {
      if (open.pop() !== (closing === '}' ? '{' : '[')) return false
      if (open.length === 0) return false
      next = 'comma'
    } else if (sign !== undefined) {
      if (next !== (sign === ':' ? 'colon' : 'comma')) return false
      next = sign === ',' && inObject ? 'key' : 'value'
    } else {
      if (next !== 'value' && (next !== 'key' || string === undefined)) return false
      next = next === 'key' ? 'colon' : 'comma'
    }
  }
  // Where the tokens end, only one that the cut went through may follow.
  return open.length > 0 && /^\s*("([^"\\\n]|\\.)*\\?|[\d.eE+truefalsn-]*)$/.test(text.slice(end))
}

const wantedLines = 10

/** Equally many commas, at least one, outside quotes in each of the first ten lines (in three if there are no more). */
function isCsv(text: string): boolean {
  let wanted = 0
  let commas = 0
  let lines = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      const close = text.indexOf('"', i + 1)
      if (close === -1) return false
      i = close
    } else if (code === 0x2c) commas++
    else if (code === 0x0a) {
      if (commas === 0 || (wanted !== 0 && commas !== wanted)) return false
      wanted = commas
      commas = 0
      lines++
      if (lines === wantedLines) return true
    }
  }
  return lines > 2
}
