/** Detects JSON, lines of JSON and comma-separated values. */
export function findDataKind(text: string, isWhole: boolean): string | undefined {
  // Only text that can begin a JSON document is parsed: a settings file begins with `[name]`, and an error costs 10 µs.
  if (/^\s*(\{\s*["}]|\[\s*["[{\]\d-]|\[\s*(true|false|null)\b)/.test(text)) {
    const json = findJson(text, isWhole)
    if (json !== undefined) return json
  }
  return isCsv(text) ? 'text/csv' : undefined
}

function findJson(text: string, isWhole: boolean): string | undefined {
  if (isWhole ? parses(text) : beginsLikeJson(text)) return 'application/json'
  const lines = text.split('\n')
  // The last line is empty or cut.
  const wholeLines = lines.slice(0, -1)
  return wholeLines.length >= 2 && wholeLines.every(parses) ? 'application/x-ndjson' : undefined
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

/** Whether a text that is cut off can be the beginning of JSON, by the order of its tokens. */
function beginsLikeJson(text: string): boolean {
  const openBrackets: string[] = []
  /** The next token that is allowed. A key is a string in an object. */
  let next: 'value' | 'key' | 'colon' | 'comma' = 'value'
  token.lastIndex = 0
  let end = 0
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    end = token.lastIndex
    const [, opening, closing, sign, string] = match
    const inObject = openBrackets.at(-1) === '{'
    if (opening !== undefined) {
      if (next !== 'value') return false
      openBrackets.push(opening)
      next = opening === '{' ? 'key' : 'value'
    } else if (closing !== undefined) {
      if (openBrackets.pop() !== (closing === '}' ? '{' : '[')) return false
      if (openBrackets.length === 0) return false
      next = 'comma'
    } else if (sign !== undefined) {
      if (next !== (sign === ':' ? 'colon' : 'comma')) return false
      next = sign === ',' && inObject ? 'key' : 'value'
    } else {
      if (next !== 'value' && (next !== 'key' || string === undefined)) return false
      next = next === 'key' ? 'colon' : 'comma'
    }
  }
  // Behind the last whole token only a token that the cut divided may follow.
  return openBrackets.length > 0 && /^\s*("([^"\\\n]|\\.)*\\?|[\d.eE+truefalsn-]*)$/.test(text.slice(end))
}

const wantedLines = 10

/** Whether the first ten lines, or at least three, have the same number of commas outside quotes, and at least one. */
function isCsv(text: string): boolean {
  let commasPerLine = 0
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
      if (commas === 0 || (commasPerLine !== 0 && commas !== commasPerLine)) return false
      commasPerLine = commas
      commas = 0
      lines++
      if (lines === wantedLines) return true
    }
  }
  return lines > 2
}

/** Detects source code and markup by marks that plain prose does not have. The mark with the highest weight wins. */
export function findSourceKind(text: string): string | undefined {
  let kind: string | undefined
  let weight = 0
  const weigh = (marks: Mark[], part: string) => {
    for (const mark of marks) if (mark[1] > weight && mark[2].test(part)) [kind, weight] = mark
  }
  for (let at = 0, end = 0; at < text.length; at = end + 1) {
    end = text.indexOf('\n', at)
    if (end === -1) end = text.length
    const marks = findMarksOfLine(text, at)
    if (marks !== undefined) weigh(marks, text.slice(at, end).trimEnd())
  }
  for (const [needle, mark] of marksByNeedle) if (text.includes(needle)) weigh([mark], text)
  weigh(marksAtStart, text.slice(0, 256))
  return kind
}

/**
 * Weights are those of file(1), so that a text with marks of two languages gets the same type. Every repetition that
 * may start at many positions is bounded, so that a text full of such starts does not take seconds.
 */
type Mark = [kind: string, weight: number, test: RegExp]

const c = 'text/x-c'
const cpp = 'text/x-c++'
const python = 'text/x-script.python'
const javascript = 'application/javascript'
const make = 'text/x-makefile'
const assembler = 'text/x-asm'
const perl = 'text/x-perl'
const ruby = 'text/x-ruby'
const java = 'text/x-java'

/** Marks by the first word of a line: one pass over the text finds them, and most lines have none. */
const marksByWord: [words: string, ...marks: Mark[]][] = [
  ['#include', [c, 52, /^#include/]],
  ['#pragma #define #ifdef #ifndef', [c, 37, /^#/]],
  ['char', [c, 37, /^\s*char( \*|\*).+;$/]],
  ['extern', [c, 39, /^\s*extern\s/]],
  ['struct', [c, 39, /^struct\s/]],
  ['union', [c, 38, /^union\s/]],
  ['namespace', [cpp, 70, /^namespace\s+\w{1,20}\s*\{/]],
  ['using', [cpp, 70, /^using\s+(namespace )?std(::)?\w*\s*;/]],
  ['template', [cpp, 70, /^\s*template\s*<.*>$/]],
  ['virtual', [cpp, 69, /^\s*virtual\s.*[};]$/]],
  ['public: private:', [cpp, 68, /./]],
  ['protected:', [cpp, 70, /./]],
  ['from', [python, 58, /^from\s+[\w.]+\s+import\b/]],
  [
    'import',
    [javascript, 80, /^import\b.* from /],
    [javascript, 79, /^import ["']\.\//],
    [python, 37, /^import [A-Za-z_]+ as [A-Za-z]\s*$/],
    [java, 41, /^import\s+(java|javax|org|com)\.[\w.*]+;/],
  ],
  ['class', [python, 54, /^class [A-Za-z_]+(\(.*\))? *:(\s+pass)?$/], [ruby, 49, /^\s*class [A-Z]\w*( < [\w:]+)?$/]],
  [
    'def',
    [python, 54, /^\s{0,50}def {1,50}[A-Za-z_]\w{0,100}\([\w*, =]{0,255}\):$/],
    [python, 57, /def __init__\s*\(\s*self/],
  ],
  ['if', [python, 57, /if __name__ *== *['"]__main__['"]/]],
  ['except', [python, 56, /^\s*except\b.*:$/]],
  [
    'export',
    [javascript, 84, /^export (function|class|default|const|var|let|async) /],
    [javascript, 80, /^export\b.* from /],
  ],
  ['const var let', [javascript, 78, /^(const|var|let)\b[^=]{1,200}=.{0,200}require\(/]],
  ['require', [javascript, 72, /^require\(["']/], [ruby, 60, /^\s*require\s*'[A-Za-z_/]+'/]],
  ['package', [perl, 64, /^package[ \t]+[\w:]+ *;/], [java, 37, /^package[ \t]+[\w.]+;/]],
  ['module', [ruby, 49, /^\s*module [A-Z]\w*$/]],
  ['all', [make, 52, /^all:/]],
  ['CFLAGS LDFLAGS VPATH', [make, 52, /^(CFLAGS|LDFLAGS|VPATH)/]],
  ['SUBDIRS', [make, 25, /^SUBDIRS/]],
  ['dnl', ['text/x-m4', 54, /^dnl /]],
  ['.ascii .asciiz .globl', [assembler, 37, /./]],
  ['.byte .even .text .file .type', [assembler, 36, /./]],
]

const words = new Map(marksByWord.flatMap(([list, ...marks]) => list.split(' ').map((word) => [word, marks])))
const firstCharacters = new Set([...words.keys()].map((word) => word.charCodeAt(0)))
const firstWord = /#[ \t]*[a-z]+|\.[a-z]+|[A-Za-z]+:?/y

/** Skips the indent, then most lines by their first character alone. */
function findMarksOfLine(text: string, start: number): Mark[] | undefined {
  let at = start
  let code = text.charCodeAt(at)
  while (code === 0x20 || code === 0x09) code = text.charCodeAt(++at)
  if (!firstCharacters.has(code)) return undefined
  firstWord.lastIndex = at
  const word = firstWord.exec(text)?.[0]
  if (word === undefined) return undefined
  return words.get(word) ?? (code === 0x23 ? words.get(word.replace(/[ \t]+/, '')) : words.get(word.replace(':', '')))
}

/** Marks for a text that contains the needle: a search for a fixed string is far cheaper than a pattern. */
const marksByNeedle: [needle: string, mark: Mark][] = [
  ['use strict', [javascript, 72, /["']use strict["']/]],
  ['exports', [javascript, 80, /\bmodule(\.|\[["'])exports.{0,200}=/]],
  ['(function', [javascript, 69, /\(function[( ]/]],
  ['(async function', [javascript, 69, /\(async function[( ]/]],
  ['typeof', [javascript, 69, /typeof.{0,100}[!=]==/]],
  ['main(', [java, 37, /\bmain\(.{0,60}String/]],
  ['main(', [c, 36, /\bmain\([^)]{0,200}\)\s{0,20}\{/]],
  ['<', ['text/html', 53, /<(!DOCTYPE html|(html|head|title|script|style|table)[ >]|a href=)/i]],
  [
    '\\',
    ['text/x-tex', 51, /\\(input|begin|section|setlength|documentstyle|chapter|documentclass|relax|contentsline)\b/],
  ],
]

const marksAtStart: Mark[] = [['text/x-lisp', 37, /\((if|setq|defvar|defparam|defun|autoload|custom-set-variables) /]]
