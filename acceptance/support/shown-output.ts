import assert from 'node:assert/strict'

/**
 * Compares the output of a command with a document. The number of blanks may differ, since columns are as wide as
 * their values; `...` or `…` stands for omitted text; values that differ from run to run must be of the same kind.
 * Ids, keys and secrets are remembered: where the document repeats one, the output must repeat it too.
 */
export function newShownOutput() {
  /** Values of the document, or their beginnings, and the values of this run. */
  const known = new Map<string, string>()
  const findKnown = (shown: string) =>
    known.get(shown) ?? [...known].find(([begin]) => begin.length >= 13 && shown.startsWith(begin))?.[1]

  return {
    learn: (shown: string, real: string) => void known.set(shown, real),
    /** Replaces the values of the document in a command by those of this run. */
    toReal: (command: string) => command.replaceAll(learnt, (shown) => findKnown(shown) ?? shown),
    require(command: string, shown: string, said: string) {
      const text = joinBrokenLines(trimLines(shown))
      const real = trimLines(leaveOut(text, said))
      const { pattern, learns } = toPattern(text, findKnown)
      const found = pattern.exec(real)
      if (found === null) {
        assert.equal(toComparable(real), toComparable(text), `$ ${command}`)
        assert.fail(`$ ${command}\nprinted:\n${real}\nand not:\n${text}`)
      }
      learns.forEach((shown, n) => {
        const value = found[n + 1] ?? ''
        const before = known.get(shown)
        assert(before === undefined || before === value, `$ ${command}\nprinted ${value} where ${before} was before.`)
        known.set(shown, value)
      })
    },
  }
}

const id = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const time = '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z'

/** A pattern of values in documents and the pattern of values that may replace them. */
type Kind = { shown: string; real: string; learnt?: true }
const same = (pattern: string): Kind => ({ shown: pattern, real: pattern })
const kinds: Kind[] = [
  // ClamAV's official databases, whose build time documents show, are missing on machines that run tests.
  { shown: `,"signatures_at":"${time}"`, real: `(?:,"signatures_at":(?:"${time}"|null))?` },
  { shown: '(?<="signatures_age_hours":)\\d+', real: '(?:\\d+|null)' },
  { ...same(id), learnt: true },
  { shown: '[0-9a-f]{8}-[0-9a-f]{4}…', real: id, learnt: true },
  { ...same('assay_(?:test_)?[0-9A-Za-z]{38}'), learnt: true },
  same('assay_\\w{6}…'),
  { ...same('whsec_[A-Za-z0-9+/]{43}='), learnt: true },
  { shown: '(?<=#)[\\w-]{43}', real: '[\\w-]{43}' },
  same(time),
  same('00-[0-9a-f]{32}-[0-9a-f]{16}-0\\d'),
  // The head of the audit log, and the number of its rows.
  { shown: '\\b\\d+:[0-9a-f]{64}\\b', real: '\\d+:[0-9a-f]{64}' },
  { shown: '\\d+(?= rows\\.)', real: '\\d+' },
  // Keys of receipts and their ids.
  same('(?<![\\w-])[\\w-]{43}(?![\\w-])'),
  // Ids of master keys.
  same('\\b[0-9a-f]{16}\\b'),
  { shown: '(?<=X-Api-Signature: )[0-9a-f]{64}', real: '[0-9a-f]{64}' },
  { shown: '(?<=webhook-timestamp: )\\d+', real: '\\d{10}' },
  same('v1,[A-Za-z0-9+/]{43}='),
  same('ClamAV \\d+\\.\\d+\\.\\d+'),
  // Measured values: durations, disk space, sizes and times of files, scores, remaining credits and requests.
  { shown: '\\d+(?:\\.\\d+)?(?= (?:ms|s|GiB)\\b)', real: '\\d+(?:\\.\\d+)?' },
  { shown: `(?<![.\\d])\\d+(?= +${time})`, real: '\\d+' },
  { shown: `(?<=${time}  \\d{3} +)\\d+`, real: '\\d+' },
  { shown: '\\b0\\.\\d{4}\\b', real: '[01]\\.\\d{4}' },
  { shown: '(?<=remaining: |retry-after: |[Cc]ontent-[Ll]ength: )\\d+', real: '\\d+' },
  { shown: '(?<="(?:signatures|of)":)\\d+', real: '\\d+' },
  { shown: '\\s*(?:\\.\\.\\.|…)\\s*', real: '[^]*?' },
  { shown: '\\s+', real: '\\s+' },
]
const anyKind = new RegExp(kinds.map(({ shown }) => `(${shown})`).join('|'), 'g')
const learnt = new RegExp(kinds.flatMap((kind) => (kind.learnt ? [kind.shown] : [])).join('|'), 'g')

/** Converts the text to a pattern. Its groups, in order, capture new values; known values must be repeated. */
function toPattern(text: string, findKnown: (shown: string) => string | undefined) {
  const learns: string[] = []
  let pattern = ''
  let at = 0
  for (const match of text.matchAll(anyKind)) {
    const [shown, ...groups] = match
    const kind = kinds[groups.findIndex((group) => group !== undefined)]
    pattern += toLiteral(text.slice(at, match.index))
    const begin = shown.replace('…', '')
    const value = kind?.learnt ? findKnown(begin) : undefined
    if (value !== undefined) pattern += toLiteral(value)
    else if (!kind?.learnt) pattern += `(?:${kind?.real})`
    else if (learns.includes(begin)) pattern += `\\${learns.indexOf(begin) + 1}`
    else pattern += `(${kind.real})`
    if (kind?.learnt && value === undefined && !learns.includes(begin)) learns.push(begin)
    at = match.index + shown.length
  }
  return { pattern: new RegExp(`^${pattern}${toLiteral(text.slice(at))}$`), learns }
}

const toLiteral = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

const trimLines = (text: string) => text.replaceAll(/[ \r]+$/gm, '').trim()

/** Joins long lines of JSON, which documents break after a comma. */
const joinBrokenLines = (text: string) => text.replaceAll(/,\n(?=")/g, ',')

/** Removes log lines and headers that the document does not show, and npm's warnings about its settings. */
function leaveOut(shown: string, whole: string): string {
  const said = whole.replaceAll(/^npm warn .*\n/gm, '')
  const withoutLog = shown.includes('{"level":') ? said : said.replaceAll(/^\{"level":.*\n/gm, '')
  if (!shown.startsWith('HTTP/')) return withoutLog
  const names = new Set([...shown.matchAll(/^([\w-]+): /gm)].map(([, name = '']) => name.toLowerCase()))
  const [head = '', ...body] = withoutLog.replaceAll('\r\n', '\n').split('\n\n')
  const [first, ...headers] = head.split('\n')
  const kept = headers.filter((header) => names.has(header.split(':', 1)[0]?.toLowerCase() ?? ''))
  return [[first, ...kept].join('\n'), ...body].join('\n\n')
}

/** Replaces variable values, for the report of a difference. */
const toComparable = (text: string) =>
  text.replaceAll(anyKind, (value) => (/^\s/.test(value) ? value.replaceAll(/ +/g, ' ') : '~'))
