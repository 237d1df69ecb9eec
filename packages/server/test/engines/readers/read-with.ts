import { execFileSync, spawnSync } from 'node:child_process'
import { openBufferSource, type Reader, type Reading } from '../../../src/engines/unpack/child/reader.ts'
import { collectMembers, type Given } from './reader-support.ts'

/** Reads content with one reader if it recognises the content. */
export async function tryReader(reader: Reader, content: Buffer | string): Promise<Reading & { given: Given[] }> {
  const source = openBufferSource(Buffer.isBuffer(content) ? content : Buffer.from(content, 'latin1'))
  const { given, members } = collectMembers()
  if (!reader.recognizes(source)) return { given, doubts: [], accounted: [] }
  return { ...(await reader.read(source, members)), given }
}

export const hasMember = (given: Given[], bytes: Buffer | string) =>
  given.some((member) => member.bytes.equals(Buffer.from(bytes)))

/** Why a case that needs a program is skipped; false when the program is installed. */
export function lacks(program: string, option = '--version'): string | false {
  const isInstalled = installed.get(program) ?? spawnSync(program, [option]).error === undefined
  installed.set(program, isInstalled)
  return isInstalled ? false : `${program} is not installed`
}

/** Programs that were looked for, so that each is started for it once. */
const installed = new Map<string, boolean>()

export const run = (
  program: string,
  args: string[],
  options: { input?: Buffer | string; cwd?: string; env?: object } = {},
) =>
  execFileSync(program, args, {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
