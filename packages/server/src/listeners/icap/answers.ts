import { type IcapStatus, reasons } from './fault.ts'

export type IcapHeaders = Record<string, string | undefined>

/** The head of an answer. What is undefined is left out. */
export function toIcapHead(status: IcapStatus, headers: IcapHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return [`ICAP/1.0 ${status} ${reasons[status]}`, ...lines, '', ''].join('\r\n')
}

/** For one who said nothing that could be answered otherwise. */
export const toLastWords = (status: IcapStatus): string =>
  toIcapHead(status, { Encapsulated: 'null-body=0', Connection: 'close' })

export const toChunk = (bytes: Buffer): Buffer[] => [
  Buffer.from(`${bytes.length.toString(16)}\r\n`),
  bytes,
  Buffer.from('\r\n'),
]

export const lastChunk = '0\r\n\r\n'
export const goOnWords = toIcapHead(100, {})
