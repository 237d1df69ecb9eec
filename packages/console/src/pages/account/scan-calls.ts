import { findOperation, type ScanOrder } from '../../api/send-scan.ts'

/** The same scan as a call of one's own. The key stays out of it: it is where one keeps it. */
export function toCalls(order: ScanOrder, origin: string): { name: string; text: string }[] {
  return [
    { name: 'curl', text: toCurl(order, origin) },
    { name: 'SDK', text: toSdk(order, origin) },
    { name: 'CLI', text: toCli(order, origin) },
  ]
}

function toCurl(order: ScanOrder, origin: string): string {
  const { source, callbackUrl } = order
  const parts =
    source.does === 'file'
      ? [
          ...(callbackUrl ? [`-F ${toShell(`callback_url=${callbackUrl}`)}`] : []),
          `-F ${toShell(`file=@${toFormPath(source.file.name)}`)}`,
        ]
      : [
          "-H 'Content-Type: application/json'",
          `-d ${toShell(JSON.stringify({ file_url: source.url, ...(callbackUrl ? { callback_url: callbackUrl } : {}) }))}`,
        ]
  return [`curl -H "X-API-Key: $ASSAY_API_KEY"`, ...parts, origin + findOperation(order).path].join(' \\\n  ')
}

function toSdk({ kind, mode, source, callbackUrl }: ScanOrder, origin: string): string {
  const verbs = kind === 'malware' ? 'client.malware' : 'client.nsfw.images'
  const what = toJs(source.does === 'file' ? source.file.name : source.url)
  const end = source.does === 'file' ? 'File' : 'Url'
  const options = callbackUrl ? `, { callbackUrl: ${toJs(callbackUrl)} }` : ''
  return [
    `import { newClient } from '@assay/client'`,
    '',
    `const client = newClient({ apiKey: process.env.ASSAY_API_KEY, baseUrl: ${toJs(origin)} })`,
    ...(mode === 'sync'
      ? [`const scan = await ${verbs}.scan${end}(${what})`]
      : [`const { id } = await ${verbs}.submit${end}(${what}${options})`, `const scan = await ${verbs}.waitFor(id)`]),
    'console.log(scan.status, scan.signals)',
  ].join('\n')
}

function toCli({ kind, mode, source, callbackUrl }: ScanOrder, origin: string): string {
  const name = source.does === 'file' ? source.file.name : source.url
  const options = [
    ...(kind === 'nsfw_image' ? ['--nsfw'] : []),
    ...(mode === 'async' ? ['--submit', '--wait'] : []),
    ...(callbackUrl ? ['--callback', toShell(callbackUrl)] : []),
  ]
  const path = name.startsWith('-') ? `./${name}` : name
  return [`export ASSAY_URL=${origin}  # and ASSAY_API_KEY`, ['assay-scan', ...options, toShell(path)].join(' ')].join(
    '\n',
  )
}

const toShell = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** curl takes a comma or semicolon for the end of the path unless it stands in quotes. */
const toFormPath = (name: string) =>
  /[,;"\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, (mark) => `\\${mark}`)}"` : name

const toJs = (text: string) => (/['\\\n\r]/.test(text) ? JSON.stringify(text) : `'${text}'`)
