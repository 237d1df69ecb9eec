/** A number with thousands separators. Intl.NumberFormat would take 20 ms to load. */
export const toCount = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',')

const units = ['B', 'KB', 'MB', 'GB', 'TB']

/** A size with three significant digits. */
export function toBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[unit]}`
}
