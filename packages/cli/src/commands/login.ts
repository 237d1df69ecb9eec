import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { OutOfCredits } from '@assay/client'
import type { Parsed } from '../command-line/parse.ts'
import { openClient, storeConfig, toConfigPath } from '../config.ts'
import { print } from '../report/output.ts'
import { Cancelled, toMessage, UserError } from '../user-errors.ts'

const maxKeyBytes = 4096

/** Stores address and key for later commands, after the service has accepted the key. */
export async function login(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  if (parsed.args.length > 0) {
    throw new UserError(
      'login takes no arguments: other users could see a key on the command line. See assay-scan login --help.',
    )
  }
  const url = toUrl(parsed.findText('url') ?? env.ASSAY_URL ?? (await prompt('Address of Assay: ')))
  const apiKey = (await readKey(parsed)).trim()
  if (apiKey === '') throw new UserError('The API key is empty. Nothing was stored.')
  const client = openClient({ url, apiKey })
  await client.ping({ timeoutMs: 30_000 }).catch((error) => {
    // The service reports missing credits only for a key that it accepts.
    if (!(error instanceof OutOfCredits)) throw error
  })
  const path = storeConfig(env, { url, apiKey })
  if (isUnencrypted(url)) {
    process.stderr.write(`Warning: ${url} does not use https. Anyone on the network can read the key and the files.\n`)
  }
  if (env.ASSAY_URL || env.ASSAY_API_KEY) {
    process.stderr.write(
      `ASSAY_URL and ASSAY_API_KEY take precedence over ${path}. Unset them to use the stored values.\n`,
    )
  }
  return await print(`${new URL(url).host} accepts this API key. Address and key are stored in ${path}.\n`)
}

export async function logout(env: NodeJS.ProcessEnv): Promise<number> {
  const path = toConfigPath(env)
  const isStored = existsSync(path)
  rmSync(path, { force: true })
  return await print(
    isStored ? `Removed ${path}. The API key stays valid until it is revoked.\n` : 'No API key is stored.\n',
  )
}

async function readKey(parsed: Parsed): Promise<string> {
  const file = parsed.findText('key-file')
  if (file === undefined && process.stdin.isTTY) return await prompt('API key (hidden): ', { isSecret: true })
  if (file === undefined || file === '-') return await readStdin()
  try {
    return readFileSync(file, 'utf8').slice(0, maxKeyBytes)
  } catch (error) {
    throw new UserError(`Cannot read ${file}: ${toMessage(error)}.`)
  }
}

async function readStdin(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.length > maxKeyBytes) throw new UserError('Standard input is too long for an API key.')
  }
  return text
}

function toUrl(text: string): string {
  const url = text.trim()
  if (/^https?:\/\/./i.test(url)) return url
  throw new UserError(
    `${url === '' ? 'The address is empty' : `${url} is not a valid address`}. Enter an address that begins with https:// or http://.`,
  )
}

const isUnencrypted = (url: string) =>
  url.toLowerCase().startsWith('http:') && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname)

/** Asks a question on the terminal. A secret is not echoed. */
async function prompt(question: string, { isSecret = false } = {}): Promise<string> {
  if (!process.stdin.isTTY) throw new UserError('Standard input is not a terminal. Use --url and --key-file.')
  process.stderr.write(question)
  const discard = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? discard : process.stderr, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Cancelled()))
      lines.once('close', () => reject(new Cancelled()))
    })
  } finally {
    lines.close()
    if (isSecret) process.stderr.write('\n')
  }
}
