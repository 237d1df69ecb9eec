/** One row of the table: the ratio of two figures of the same run. */
export type Row = { what: string; ours: string; against: string; ratio: number | undefined; wanted: string }

export function toMarkdown(rows: Row[]): string {
  const lines = rows.map(
    ({ what, ours, against, ratio, wanted }) =>
      `| ${what} | ${ours} | ${against} | ${ratio === undefined ? '' : ratio.toFixed(2)} | ${wanted} |`,
  )
  return ['| What | Assay | Against | Ratio | Wanted |', '|---|---|---|---|---|', ...lines].join('\n')
}
