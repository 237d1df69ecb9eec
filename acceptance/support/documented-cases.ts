import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Kind } from './submitting.ts'

type Expected = { status: string; signals: string[]; seconds: number }
export type DocumentedCase = {
  name: string
  sources: ('file' | 'url')[]
  /** Results of a scan and of a submit by kind; 500 means that the scan is refused. Undefined for unknown names. */
  of: Record<Kind, { scan: Expected | 500; submit: Expected } | undefined>
}

/** Reads the cases of test mode from the table in docs/test-mode.md. */
export function readDocumentedCases(): DocumentedCase[] {
  const document = readFileSync(new URL('../../docs/test-mode.md', import.meta.url), 'utf8')
  const table = /<!-- cases -->\n(.*)<!-- \/cases -->/s.exec(document)?.[1] ?? ''
  const [, , ...rows] = table.trim().split('\n')
  assert(rows.length > 10)
  return rows.map((row) => {
    const [, name = '', sources = '', malware = '', images = ''] = row.split('|').map((cell) => cell.trim())
    return {
      name: name.replaceAll('`', ''),
      sources: sources.split(', ').map((source) => (source === 'files' ? 'file' : 'url')),
      of: { malware: readCell(malware), 'nsfw/images': readCell(images) },
    }
  })
}

function readCell(cell: string): { scan: Expected | 500; submit: Expected } | undefined {
  if (cell === '-') return undefined
  const [, scan = cell, submit = cell] = /^scan: (.*); submit: (.*)$/.exec(cell) ?? []
  return { scan: scan === '500' ? 500 : readEnd(scan), submit: readEnd(submit) }
}

function readEnd(text: string): Expected {
  const [, status = '', signal] = /^`(\w+)`(?: `(\S+)`)?/.exec(text) ?? []
  const seconds = Number(/ after (\d+) s$/.exec(text)?.[1] ?? 0)
  return { status, signals: signal === undefined ? [] : [signal], seconds }
}
