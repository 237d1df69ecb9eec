import type { Doubt } from '../../../domain/ports/engines.ts'
import type { Range } from './reader.ts'

const maxComplaints = 50
const maxComplaintLength = 300

/** The report of 7-Zip about one run. */
export type SevenZipReport = {
  /** The exit code; -1 when 7-Zip crashed. */
  code: number
  /** Errors and warnings, cut to a bounded length. */
  complaints: string[]
  /** The number of complaints about links and attributes, which have no bytes. */
  ignored: number
  members: number
  /** The container within the file; the whole file when 7-Zip does not tell. */
  physical: Range
  /** A member was not written from front to back, so the bytes that were sent are not its content. */
  rewritten: boolean
}

/**
 * Reads the messages of 7-Zip. It prints errors line by line and reflects them in its exit code; it prints warnings
 * only within its listing of the container, and exits with success.
 */
export function readMessages(contentBytes: number) {
  const complaints: string[] = []
  const properties = new Map<string, number>()
  let ignored = 0
  let isWarning = false

  function onError(line: string) {
    if (isHarmless(line)) ignored++
    else if (line !== '' && complaints.length < maxComplaints) complaints.push(line.slice(0, maxComplaintLength))
  }

  return {
    onError,
    onOutput(line: string) {
      const [, name, value] = /^(Offset|Physical Size|Tail Size) = (\d+)$/.exec(line) ?? []
      // 7-Zip lists the outermost container first: the file that it was given.
      if (name !== undefined && !properties.has(name)) properties.set(name, Number(value))
      else if (/^WARNINGS?:/.test(line)) isWarning = true
      else if (line === '--' || line.includes(' = ')) isWarning = false
      else if (isWarning && !line.startsWith('There are data after the end')) onError(line)
    },
    get: () => ({ complaints, ignored, physical: toRange(properties, contentBytes) }),
  }
}

function toRange(properties: Map<string, number>, contentBytes: number): Range {
  const start = properties.get('Offset') ?? 0
  const bytes = properties.get('Physical Size') ?? contentBytes - start
  const end = contentBytes - (properties.get('Tail Size') ?? 0)
  return { start: Math.min(start, contentBytes), end: Math.min(start + bytes, end, contentBytes) }
}

/** Links and folders have no bytes, and the folder of the members keeps neither attributes nor folders. */
const isHarmless = (line: string) =>
  /^ERROR: (?:Cannot create (?:folder|hard link|symbolic link)|Dangerous link|Cannot set file attribute)/.test(line)

const fatalErrorCode = 2
const outOfMemoryCode = 8

/** The reasons why the report does not mean that every member was given whole. */
export function listDoubts(report: SevenZipReport, { type, hasTail }: { type: string; hasTail: boolean }): Doubt[] {
  const { code, complaints, ignored, rewritten, members } = report
  const doubts = new Set<Doubt>()
  if (complaints.some((line) => encryption.test(line))) doubts.add('EncryptedContent')
  if (code === outOfMemoryCode || complaints.some((line) => memory.test(line))) doubts.add('ScanLimitExceeded')
  const isExplained = doubts.size > 0 || (code === fatalErrorCode && complaints.length === 0 && ignored > 0)
  // A container may hold an encrypted member and a broken one: both are reported.
  const hasOther = complaints.some((line) => !encryption.test(line) && !memory.test(line) && !heading.test(line))
  const mayHideInTail = hasTail && (members === 0 || sequentialFormats.has(type))
  if (rewritten || hasOther || mayHideInTail || (code !== 0 && !isExplained)) doubts.add('UnsupportedContainer')
  return [...doubts]
}

const encryption = /encrypted|wrong password/i
const memory = /allocate|enough memory/i
/** Begins a list of complaints, or names the container. */
const heading = /^(?:ERRORS?|WARNINGS?):\s*(?:\/content)?$/

/** Formats without a directory. 7-Zip takes a broken member for the end of the container, and reports success. */
const sequentialFormats = new Set(['rar', 'rar5', 'cpio', 'ar', 'arj', 'lzh'])
