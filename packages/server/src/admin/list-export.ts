import { Readable } from 'node:stream'
import { type exportFormats, findRowSchema, type Route } from '@assay/contract/admin'
import type { FastifyReply } from 'fastify'
import { Problem } from '../domain/problem.ts'

type Format = (typeof exportFormats)[number]
type Query = Record<string, unknown>
type Row = Record<string, unknown>

/** Rows that are read from the database at a time. */
const exportPage = '1000'

/** Takes `format` out of the query of a list. Without it the list answers as usual. */
export function takeFormat(query: Query): { format: Format | undefined; rest: Query } {
  const { format, ...rest } = query
  if (format === undefined || format === 'csv' || format === 'json') return { format, rest }
  throw new Problem({ kind: 'validation', errors: { format: ['Must be csv or json.'] } })
}

/** Answers with all rows of a list, also those of its other pages, as a file. */
export function sendExport(
  reply: FastifyReply,
  { route, format, list }: { route: Route; format: Format; list(page: Query): Promise<unknown> },
): Readable {
  const fileName = `${route.path.split('/').at(-1)}.${format}`
  reply
    .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8')
    .header('Content-Disposition', `attachment; filename="${fileName}"`)
  const rows = listAll(list)
  return Readable.from(format === 'csv' ? toCsv(rows, listColumns(route)) : toJson(rows))
}

const listColumns = (route: Route) => Object.keys(findRowSchema(route)?.properties ?? {})

async function* listAll(list: (page: Query) => Promise<unknown>): AsyncGenerator<Row> {
  for (let cursor: string | undefined; ; ) {
    const answer = (await list({ limit: exportPage, ...(cursor === undefined ? {} : { cursor }) })) as
      | Row[]
      | { items: Row[]; next: string | null }
    if (Array.isArray(answer)) return yield* answer
    yield* answer.items
    if (answer.next === null) return
    cursor = answer.next
  }
}

async function* toJson(rows: AsyncGenerator<Row>) {
  let separator = '[\n'
  for await (const row of rows) {
    yield separator + JSON.stringify(row)
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}

async function* toCsv(rows: AsyncGenerator<Row>, columns: string[]) {
  yield toCsvLine(columns)
  for await (const row of rows) yield toCsvLine(columns.map((name) => toCellValue(row[name])))
}

function toCellValue(value: unknown): string | number {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return value
  if (Array.isArray(value)) return value.map(toCellValue).join(' ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/**
 * Makes a line of CSV (RFC 4180). Names come from strangers, so a cell that a spreadsheet would read as a formula is
 * quoted as text.
 */
export const toCsvLine = (cells: (string | number)[]): string => `${cells.map(toCell).join(',')}\r\n`

function toCell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
