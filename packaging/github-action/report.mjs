/**
 * Turns the JSON lines of assay-scan into annotations, a summary and outputs of a GitHub step, and decides whether the
 * step fails. Arguments: the file with the lines, and the exit code of assay-scan.
 */
import { appendFileSync, readFileSync } from 'node:fs'

/** GitHub shows few annotations of a step; the summary and the report have the rest. */
const maxAnnotations = 50
const maxRows = 500
const levels = ['error', 'threat', 'never']

const [file, exitCode] = process.argv.slice(2)
const failOn = process.env.ASSAY_FAIL_ON
const results = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line))
const threats = results.filter(({ status }) => status === 'threat')
const errors = results.filter(({ status }) => status === 'error')
/** Symbolic links and special files in directories, whose content was not scanned. */
const skipped = results.filter(({ status }) => status === 'skipped')
const notable = [...threats, ...errors, ...skipped]
const files = results.filter(({ status }) => ['clean', 'threat', 'error'].includes(status)).length
const status = findStatus()

for (const result of notable.slice(0, maxAnnotations)) annotate(result)
const reason = findReason()
if (reason !== undefined) print('error', {}, reason)
write(process.env.GITHUB_STEP_SUMMARY, toSummary())
const counts = { files, threats: threats.length, errors: errors.length, skipped: skipped.length }
const outputs = { status, ...counts, report: file }
const lines = Object.entries(outputs).map(([name, value]) => `${name}=${value}\n`)
write(process.env.GITHUB_OUTPUT, lines.join(''))
process.stdout.write(`assay-scan: ${status}. ${describeCounts()}\n`)
process.exitCode = hasFailed() ? 1 : 0

/** Only the exit code 0 with at least one verdict and nothing skipped is clean: an empty directory was not scanned. */
function findStatus() {
  if (exitCode === '1' || threats.length > 0) return 'threat'
  return exitCode === '0' && files > 0 && errors.length + skipped.length === 0 ? 'clean' : 'error'
}

function hasFailed() {
  if (!levels.includes(failOn)) return true
  return failOn !== 'never' && (status === 'threat' || (status === 'error' && failOn === 'error'))
}

/** Returns a sentence about a failure that belongs to no file. */
function findReason() {
  if (!levels.includes(failOn)) return `fail-on must be one of ${levels.join(', ')}, not ${failOn}.`
  if (status !== 'error' || errors.length + skipped.length > 0) return undefined
  if (exitCode === '0') return 'No file was scanned: the path has no files with content.'
  return `assay-scan ended with exit code ${exitCode}; the log of this step tells why.`
}

function describeCounts() {
  return `Files: ${files}. Threats: ${threats.length}. Errors: ${errors.length}. Skipped: ${skipped.length}.`
}

function annotate(result) {
  const isThreat = result.status === 'threat'
  const about = isThreat ? 'Threat found' : 'Not scanned'
  print(
    isThreat || failOn === 'error' ? 'error' : 'warning',
    { file: toPath(result.path), title: about },
    describe(result),
  )
}

function describe({ status, signals, reason, path }) {
  const names = (signals ?? []).join(', ')
  return status === 'threat' ? `${path}: ${names}` : `${path} was not scanned: ${reason ?? names}`
}

/** Annotations name files relative to the repository. */
function toPath(path) {
  const root = `${process.env.GITHUB_WORKSPACE}/`
  return path.startsWith(root) ? path.slice(root.length) : path.replace(/^\.\//, '')
}

function print(level, properties, message) {
  const escaped = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(value)}`)
  process.stdout.write(`::${level}${escaped.length > 0 ? ` ${escaped.join(',')}` : ''}::${escapeData(message)}\n`)
}

function escapeData(text) {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function escapeProperty(text) {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

function toSummary() {
  const head = `### Assay scan: ${status}\n\n${describeCounts()}\n`
  if (notable.length === 0) return reason === undefined ? head : `${head}\n${escapeCell(reason)}\n`
  const rows = notable.slice(0, maxRows).map((result) => {
    const found =
      result.status === 'threat' ? (result.signals ?? []).join(', ') : (result.reason ?? result.signals?.join())
    return `| ${escapeCell(result.path)} | ${result.status} | ${escapeCell(found ?? '')} |\n`
  })
  const rest = notable.length > maxRows ? `\n${notable.length - maxRows} more are in the report.\n` : ''
  return `${head}\n| File | Status | Reason |\n| --- | --- | --- |\n${rows.join('')}${rest}`
}

/** File names come from anybody, so nothing in them may become Markdown or HTML. */
function escapeCell(text) {
  return text.replaceAll(/[&<>|`*_[\]()\\~#!\r\n@:/]/g, (character) => `&#${character.codePointAt(0)};`)
}

function write(path, text) {
  if (path) appendFileSync(path, text)
}
