/** One line of CSV (RFC 4180). A cell that a spreadsheet would take for a formula is made text: names come from strangers. */
export const toCsvLine = (cells: (string | number | null)[]): string => `${cells.map(toCell).join(',')}\r\n`

function toCell(value: string | number | null): string {
  const text = String(value ?? '')
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
