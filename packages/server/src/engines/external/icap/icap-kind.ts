import { version } from '../../../runtime/process.ts'
import type { ServerAddress } from '../../../runtime/server-address.ts'
import type { OptionReader } from '../../../runtime/toml-options.ts'
import type { ExternalKind } from '../adapter.ts'
import { readTlsOptions } from '../tls-options.ts'
import { openIcapAdapter } from './icap-adapter.ts'
import type { ThreatHeader } from './icap-findings.ts'

const defaultPorts = { 'icap:': 1344, 'icaps:': 11344 }
const form = /^icaps?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?\/[!-~]*$/i
const must = 'must be the address of a service such as icap://scanner.example.com:1344/avscan, or with icaps://'

/** An ICAP server of any product. */
export const icapKind: ExternalKind = {
  read(options) {
    const { url, host, address } = readService(options)
    const method = options.oneOf('method', ['RESPMOD', 'REQMOD'], 'RESPMOD')
    const usesPreview = options.flag('preview', true)
    const threatHeader = readThreatHeader(options)
    const service = { url, host, method, userAgent: `Assay/${version}` }
    return ({ concurrency }) => openIcapAdapter({ address, service, usesPreview, threatHeader }, concurrency)
  },
}

function readService(options: OptionReader): { url: string; host: string; address: ServerAddress } {
  const url = options.requireText('url', '"icap://scanner.example.com:1344/avscan"', form, must)
  if (url !== '' && !URL.canParse(url)) options.note('url', must)
  const { protocol, hostname, port, host } = new URL(URL.canParse(url) ? url : 'icap://unknown/')
  const isSecure = protocol === 'icaps:'
  const tls = isSecure ? readTlsOptions(options) : undefined
  const socket = options.text('socket', /^\/.+/, 'must be the path of a unix socket such as /run/c-icap/icap.sock')
  if (socket !== undefined) {
    if (isSecure) options.note('socket', 'is for icap:// addresses: a socket is local')
    return { url, host, address: { path: socket } }
  }
  const number = port === '' ? defaultPorts[isSecure ? 'icaps:' : 'icap:'] : Number(port)
  const address = { host: hostname.replaceAll(/^\[|\]$/g, ''), port: number, ...(tls === undefined ? {} : { tls }) }
  return { url, host, address }
}

function readThreatHeader(options: OptionReader): ThreatHeader | undefined {
  const header = options.text('threat_header', /^[\w-]+$/, 'must be the name of a header such as X-Scan-Result')
  const pattern = options.pattern('threat_pattern', undefined)
  if ((header === undefined) !== (pattern === undefined)) {
    options.note('threat_header', 'and threat_pattern go together: set both or neither')
  }
  return header === undefined || pattern === undefined ? undefined : { header, pattern }
}
