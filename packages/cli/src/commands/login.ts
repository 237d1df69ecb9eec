import { readFileSync } from 'node:fs'
import { OutOfCredits } from '@assay/client'
import type { Parsed } from '../command-line/parse.ts'
import { openClient, store, toConfigPath } from '../config.ts'
import { Mistake } from '../mistake.ts'
import { print } from '../report/print.ts'
import { ask } from './ask.ts'

const maxKeyBytes = 4096

/** Stores address and key for later commands, if the service is there and knows the key. */
export async function login(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  if (parsed.args.length > 0)
    throw new Mistake(
      'login takes no arguments; a key on the command line could be seen by others. See assay-scan login --help.',
    )
  const url = toUrl(parsed.findText('url') ?? env.ASSAY_URL ?? (await ask('Address of Assay: ', { isSecret: false })))
  const apiKey = (await readKey(parsed)).trim()
  if (apiKey === '') throw new Mistake('The key is empty. Nothing was stored.')
  const client = openClient({ url, apiKey })
  await client.ping({ timeoutMs: 30_000 }).catch((error) => {
    // Only a key that is known can be out of credits.
    if (!(error instanceof OutOfCredits)) throw error
  })
  const path = store(env, { url, apiKey })
  if (isOpenToReaders(url))
    process.stderr.write(`${url} is not https: whoever is on the way can read the key and the files.\n`)
  if (env.ASSAY_URL || env.ASSAY_API_KEY) {
    process.stderr.write(
      `ASSAY_URL and ASSAY_API_KEY are stronger than ${toConfigPath(env)}: unset them to use what is stored.\n`,
    )
  }
  return await print(`${new URL(url).host} knows this key. It is stored in ${path}.\n`)
}

async function readKey(parsed: Parsed): Promise<string> {
  const file = parsed.findText('key-file')
  if (file === undefined && process.stdin.isTTY) return await ask('API key (not shown): ', { isSecret: true })
  if (file === undefined || file === '-') return await readStdin()
  try {
    return readFileSync(file, 'utf8').slice(0, maxKeyBytes)
  } catch (error) {
    throw new Mistake(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`)
  }
}

async function readStdin(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.length > maxKeyBytes) throw new Mistake('Standard input is longer than a key.')
  }
  return text
}

function toUrl(text: string): string {
  const url = text.trim()
  if (!/^https?:\/\/./i.test(url))
    throw new Mistake(
      `${url === '' ? 'The address is empty' : `${url} is no address`}. It begins with https:// or http://.`,
    )
  return url
}

const isOpenToReaders = (url: string) =>
  url.toLowerCase().startsWith('http:') && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname)
