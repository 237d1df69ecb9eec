import { findOperation, type ScanRequest } from '../../api/send-scan.ts'

/** The same scan as code. The API key comes from the environment. */
export function toCalls(scan: ScanRequest, origin: string): { name: string; text: string }[] {
  return [
    { name: 'curl', text: toCurl(scan, origin) },
    { name: 'SDK', text: toSdk(scan, origin) },
    { name: 'CLI', text: toCli(scan, origin) },
  ]
}

function toCurl(scan: ScanRequest, origin: string): string {
  const { source, callbackUrl } = scan
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
  return [`curl -H "X-API-Key: $ASSAY_API_KEY"`, ...parts, origin + findOperation(scan).path].join(' \\\n  ')
}

function toSdk({ kind, mode, source, callbackUrl }: ScanRequest, origin: string): string {
  const scans = kind === 'malware' ? 'client.malware' : 'client.nsfw.images'
  const input = toJs(source.does === 'file' ? source.file.name : source.url)
  const suffix = source.does === 'file' ? 'File' : 'Url'
  const options = callbackUrl ? `, { callbackUrl: ${toJs(callbackUrl)} }` : ''
  return [
    `import { newClient } from '@assay/client'`,
    '',
    `const client = newClient({ apiKey: process.env.ASSAY_API_KEY, baseUrl: ${toJs(origin)} })`,
    ...(mode === 'sync'
      ? [`const scan = await ${scans}.scan${suffix}(${input})`]
      : [
          `const { id } = await ${scans}.submit${suffix}(${input}${options})`,
          `const scan = await ${scans}.waitFor(id)`,
        ]),
    'console.log(scan.status, scan.signals)',
  ].join('\n')
}

function toCli({ kind, mode, source, callbackUrl }: ScanRequest, origin: string): string {
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

/** Quotes a path in which curl would treat a comma or semicolon as the end. */
const toFormPath = (name: string) =>
  /[,;"\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, (mark) => `\\${mark}`)}"` : name

const toJs = (text: string) => (/['\\\n\r]/.test(text) ? JSON.stringify(text) : `'${text}'`)
