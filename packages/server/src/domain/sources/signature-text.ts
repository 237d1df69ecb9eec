import { extname } from 'node:path'

/**
 * Kinds of files that sources may bring. Kinds that silence other signatures (.fp, .sfp, .ign2) are left out: a source
 * must not be able to make a threat clean.
 */
const lineKinds: Record<string, { separator: string; field: number; maxBytes?: number }> = {
  '.ndb': { separator: ':', field: 0 },
  '.cdb': { separator: ':', field: 0 },
  '.ldb': { separator: ';', field: 0, maxBytes: 32_767 },
  '.hdb': { separator: ':', field: 2 },
  '.hsb': { separator: ':', field: 2 },
  '.mdb': { separator: ':', field: 2 },
  '.msb': { separator: ':', field: 2 },
}
/** ClamAV reads a line of this length and its end in one piece, and the rest of a longer one as another line. */
const maxLineBytes = 8190
const ruleKinds = ['.yar', '.yara']

const toKind = (file: string) => extname(file).toLowerCase()
export const isRuleFile = (file: string) => ruleKinds.includes(toKind(file))
export const isSourceFile = (file: string) => isRuleFile(file) || Object.hasOwn(lineKinds, toKind(file))

/** The name of the signature in a line of a ClamAV file. Undefined for comments, empty lines and other text. */
export function findSignatureName(file: string, line: string): string | undefined {
  const kind = lineKinds[toKind(file)]
  if (kind === undefined || line.startsWith('#') || line.trim() === '') return undefined
  return line.split(kind.separator, kind.field + 1)[kind.field]?.trim()
}

/** Whether ClamAV would read a line, in latin1, as several, of which `findSignatureName` finds the first name only. */
export const isTooLong = (file: string, line: string) =>
  line.length > (lineKinds[toKind(file)]?.maxBytes ?? maxLineBytes)

/**
 * ClamAV uses such names for content that it could not scan, and Assay's own signatures for containers. A signature of
 * that name would be read as a doubt instead of a finding, and could hide one.
 */
export const isReservedName = (name: string) => /^Heuristics\./i.test(name)

/**
 * The reserved name in a reply of clamd that comes from a signature, which clamd marks, and not from ClamAV itself. The
 * trial loads no such signature, so the name was hidden from us.
 */
export function findReservedMatch(reply: string): string | undefined {
  const name = /^stream: (.+)\.UNOFFICIAL FOUND$/s.exec(reply)?.[1]
  return name !== undefined && isReservedName(name.trim()) ? name : undefined
}

const comment = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
const ruleHead = /((?:\b(?:private|global)\s+)*)\brule\s+[A-Za-z_]/g
const listModifiers = (text: string) => [...text.replaceAll(comment, ' ').matchAll(ruleHead)].map(([, found]) => found)

export const hasRule = (text: string) => listModifiers(text).length > 0
/** Whether the file has a rule that is reported, and not only private ones. */
export const hasPublicRule = (text: string) => listModifiers(text).some((found) => !/\bprivate\b/.test(found ?? ''))

/**
 * Makes a YARA rule private, so that it is not reported, and rules that refer to it still compile. Undefined when the
 * rule cannot be found for certain: then the whole file is held back.
 */
export function hideRule(text: string, name: string): string | undefined {
  const heads = [...text.matchAll(/^[ \t]*(?:(?:private|global)\s+)*(rule)\s+([A-Za-z_]\w*)/gm)]
  const [head, ...others] = heads.filter(([, , found]) => found === name)
  if (head === undefined || others.length > 0 || /\bprivate\b/.test(head[0])) return undefined
  const at = head.index + head[0].search(/\brule\s+[A-Za-z_]\w*$/)
  return `${text.slice(0, at)}private ${text.slice(at)}`
}
