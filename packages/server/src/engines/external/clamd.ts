import { EngineDown } from '../../domain/ports/engines.ts'
import type { ServerAddress } from '../../runtime/node-http.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'
import { toReport } from '../clamav/clamav-engine.ts'
import { makeClamdClient } from '../clamav/client.ts'
import { ContentRefused, type ExternalAdapter, type ExternalKind, readTlsOptions } from './adapter.ts'

const versionTimeoutMs = 3000
/** How long the version of the engine and its databases counts as known. */
const versionMs = 30_000

/** Another clamd: on a unix socket, over TCP, or over TCP with TLS in front of it. */
export const clamdKind: ExternalKind = {
  read(options) {
    const address = readAddress(options)
    return ({ concurrency }) => openClamdAdapter(address, concurrency)
  },
}

function readAddress(options: OptionReader): ServerAddress {
  const must = 'must be the path of a socket such as /run/clamav/clamd.ctl, or a host and port such as clamav:3310'
  const form = /^(?:\/.+|(?:\[[0-9a-f:.]+\]|[\w.-]+):\d{1,5})$/i
  const text = options.requireText('address', '"clamav.example.com:3310"', form, must)
  const isSecure = options.flag('tls', false)
  const tls = isSecure ? readTlsOptions(options) : undefined
  if (text.startsWith('/')) {
    if (isSecure) options.note('tls', 'is for a host and port: a socket is local')
    return { path: text }
  }
  const [, v6, name, digits] = /^(?:\[(.+)\]|(.+)):(\d+)$/.exec(text) ?? []
  const port = Number(digits)
  if (text !== '' && (port === 0 || port > 65535)) options.note('address', `${must}. Given: ${JSON.stringify(text)}`)
  return { host: v6 ?? name ?? '', port, ...(tls === undefined ? {} : { tls }) }
}

function openClamdAdapter(address: ServerAddress, concurrency: number): ExternalAdapter {
  const client = makeClamdClient({ address, sessionCount: concurrency, sendsFromOwner: false })
  let version: string | undefined
  let knownUntil = 0

  /** No scan waits for the version. */
  async function refreshVersion() {
    if (performance.now() < knownUntil) return
    knownUntil = performance.now() + versionMs
    version = await client.sendCommand('VERSION', versionTimeoutMs).then(toVersion, () => undefined)
  }
  void refreshVersion()

  return {
    async scan(content, { signal }) {
      void refreshVersion()
      const answer = toAnswer(await client.scan(content, { signal }))
      return { ...answer, version }
    },
    async close() {
      client.close()
    },
  }
}

/** `ClamAV 1.4.6/27820/Sat Nov 14 08:25:01 2026` is `ClamAV 1.4.6/27820`. */
const toVersion = (reply: string): string | undefined => /^ClamAV [^/]{1,40}(?:\/\d{1,10})?/.exec(reply)?.[0]

function toAnswer(reply: string) {
  if (reply.startsWith('INSTREAM size limit exceeded')) {
    throw new ContentRefused('The content is larger than StreamMaxLength of this clamd: raise that, or set max_bytes')
  }
  const { findings, doubts } = readReport(reply)
  return { findings, doubts }
}

function readReport(reply: string) {
  try {
    return toReport(reply)
  } catch (error) {
    // clamd is not to blame for a temporary directory that is full, but it did not scan either.
    throw new EngineDown((error as Error).message, { cause: error })
  }
}
