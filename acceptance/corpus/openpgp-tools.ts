import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './tools.ts'

let home: string | undefined

/** Makes a key once for all samples of this process. Its directory and agent go away with the process. */
function openHome(): string {
  if (home !== undefined) return home
  const directory = mkdtempSync(join(tmpdir(), 'gpg-'))
  home = directory
  // Without a count the agent measures for seconds how many rounds take a tenth of a second.
  writeFileSync(join(directory, 'gpg-agent.conf'), 's2k-count 65536\n')
  process.once('exit', () => {
    run('gpgconf', ['--homedir', directory, '--kill', 'all'])
    rmSync(directory, { recursive: true, force: true })
  })
  runGpg('--passphrase', '', '--quick-gen-key', 'Ann <ann@example.org>', 'future-default', 'default', 'never')
  return home
}

const usual = ['--batch', '--yes', '--quiet', '--no-options', '--pinentry-mode', 'loopback', '--trust-model', 'always']

function runGpg(...args: string[]): Buffer {
  return run('gpg', ['--homedir', openHome(), ...usual, ...args])
}

/** Runs gpg on the payload of a sample and returns what it writes. */
export const runGpgOnPayload = (workdir: string, ...args: string[]): Buffer =>
  runGpg('-o', '-', ...args, join(workdir, 'payload.com'))

export const passphrase = ['--passphrase', 'secret', '--s2k-count', '1024']

/** How the length of a packet is written. */
export type Framing = 'old-1' | 'old-2' | 'old-4' | 'old-rest' | 'new-1' | 'new-2' | 'new-5' | 'new-partial'

export const framings: Framing[] = ['old-1', 'old-2', 'old-4', 'old-rest', 'new-1', 'new-2', 'new-5', 'new-partial']

/** Writes a packet of OpenPGP. Bodies have less than 192 bytes for `new-1`, and less than 256 for `old-1`. */
export function writePacket(tag: number, body: Buffer, framing: Framing): Buffer {
  const { length } = body
  const oldTag = (kind: number) => 0x80 | (tag << 2) | kind
  const newTag = 0xc0 | tag
  const word = Buffer.alloc(4)
  word.writeUInt32BE(length)
  // A first piece has a length that is a power of two.
  const firstPiece = 2 ** Math.floor(Math.log2(length - 1))
  const headers: Record<Framing, () => Buffer[]> = {
    'old-1': () => [Buffer.from([oldTag(0), length]), body],
    'old-2': () => [Buffer.from([oldTag(1), length >> 8, length & 255]), body],
    'old-4': () => [Buffer.from([oldTag(2)]), word, body],
    'old-rest': () => [Buffer.from([oldTag(3)]), body],
    'new-1': () => [Buffer.from([newTag, length]), body],
    'new-2': () => [Buffer.from([newTag, ((length - 192) >> 8) + 192, (length - 192) & 255]), body],
    'new-5': () => [Buffer.from([newTag, 255]), word, body],
    'new-partial': () => [
      Buffer.from([newTag, 224 + Math.log2(firstPiece)]),
      body.subarray(0, firstPiece),
      Buffer.from([length - firstPiece]),
      body.subarray(firstPiece),
    ],
  }
  return Buffer.concat(headers[framing]())
}

/** Body of a literal packet that holds the payload. */
export const writeLiteral = (payload: Buffer, format = 'b', name = 'payload.com'): Buffer =>
  Buffer.concat([Buffer.from(`${format}${String.fromCharCode(name.length)}${name}\0\0\0\0`, 'latin1'), payload])
