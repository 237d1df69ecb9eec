import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { extname } from 'node:path'
import type { SourceSettings } from './ports/source-store.ts'

/** Why a source cannot be updated, as a sentence for the operator. The signatures in use stay. */
export class SourceError extends Error {
  override name = 'SourceError'
}

const checksumForms = [
  // sha256sum: the hash, a blank, a blank or an asterisk, the name.
  /^(?<hash>[0-9a-f]{64})[ \t]+\*?(?<name>.+)$/i,
  // sha256sum --tag, and BSD.
  /^SHA256 ?\((?<name>.+)\) ?= ?(?<hash>[0-9a-f]{64})$/i,
]

/** Finds the SHA-256 of a file in a list such as SHA256SUMS. A list that is one hash without a name is for any file. */
export function findChecksum(list: string, fileName: string): string {
  const lines = list
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const [only = ''] = lines
  if (lines.length === 1 && /^[0-9a-f]{64}$/i.test(only)) return only.toLowerCase()
  const hashes = lines.flatMap((line) => {
    const found = checksumForms.map((form) => form.exec(line)?.groups).find((groups) => groups !== undefined)
    return found?.name?.split('/').at(-1) === fileName ? [found.hash?.toLowerCase() ?? ''] : []
  })
  const [hash] = hashes
  if (hash === undefined) throw new SourceError(`The list of checksums does not name ${fileName}.`)
  if (new Set(hashes).size > 1) throw new SourceError(`The list of checksums has several hashes of ${fileName}.`)
  return hash
}

const algorithmBytes = 2
const keyIdBytes = 8
const publicKeyBytes = 32
const signatureBytes = 64
/** The head of a public key of Ed25519 in DER. */
const derHead = Buffer.from('302a300506032b6570032100', 'hex')

type MinisignKey = { id: string; key: KeyObject }

/** The content of a signature file of minisign. `isPrehashed` says that the BLAKE2b-512 hash of the content is signed. */
export type MinisignSignature = {
  keyId: string
  isPrehashed: boolean
  signature: Buffer
  trustedComment: string
  commentSignature: Buffer
}

/** Reads a public key as `minisign` prints it. Undefined when it is none. */
export function findMinisignKey(text: string): MinisignKey | undefined {
  const bytes = decodeBase64(text.trim())
  if (bytes.length !== algorithmBytes + keyIdBytes + publicKeyBytes || readAlgorithm(bytes) !== 'Ed') return undefined
  const der = Buffer.concat([derHead, bytes.subarray(algorithmBytes + keyIdBytes)])
  return { id: readKeyId(bytes), key: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
}

/** Reads a `.minisig` file: an untrusted comment, the signature, a trusted comment and the signature of both. */
export function readMinisig(text: string): MinisignSignature {
  const [untrusted = '', first = '', comment = '', second = ''] = text.split(/\r?\n/)
  const bytes = decodeBase64(first)
  const commentSignature = decodeBase64(second)
  const prefix = 'trusted comment: '
  const isValid =
    untrusted.startsWith('untrusted comment:') &&
    comment.startsWith(prefix) &&
    bytes.length === algorithmBytes + keyIdBytes + signatureBytes &&
    commentSignature.length === signatureBytes &&
    ['Ed', 'ED'].includes(readAlgorithm(bytes))
  if (!isValid) throw new SourceError('The minisign signature of the source cannot be read.')
  return {
    keyId: readKeyId(bytes),
    isPrehashed: readAlgorithm(bytes) === 'ED',
    signature: bytes.subarray(algorithmBytes + keyIdBytes),
    trustedComment: comment.slice(prefix.length),
    commentSignature,
  }
}

/** Throws unless the key has signed the content. `signed` is the content, or its BLAKE2b-512 hash if `isPrehashed`. */
export function requireMinisign(publicKey: MinisignKey, found: MinisignSignature, signed: Buffer) {
  if (found.keyId !== publicKey.id) throw new SourceError('The source is signed with another minisign key.')
  const comment = Buffer.concat([found.signature, Buffer.from(found.trustedComment)])
  const isSigned =
    verify(null, signed, publicKey.key, found.signature) && verify(null, comment, publicKey.key, found.commentSignature)
  if (!isSigned) throw new SourceError('The minisign signature does not belong to the downloaded content.')
}

const readAlgorithm = (bytes: Buffer) => bytes.toString('latin1', 0, algorithmBytes)
const readKeyId = (bytes: Buffer) => bytes.toString('hex', algorithmBytes, algorithmBytes + keyIdBytes)

/** Buffer.from skips characters that are no base64; a text that holds any is no key. */
const decodeBase64 = (text: string) =>
  /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0)

/**
 * Kinds of files that sources may bring. Kinds that silence other signatures (.fp, .sfp, .ign2) are left out: a source
 * must not be able to make a threat clean.
 */
const lineKinds: Record<string, { separator: string; field: number; maxBytes?: number }> = {
  '.ndb': { separator: ':', field: 0 },
  '.cdb': { separator: ':', field: 0 },
  '.ldb': { separator: ';', field: 0, maxBytes: 32_767 },
  '.hdb': { separator: ':', field: 2 },
  '.hsb': { separator: ':', field: 2 },
  '.mdb': { separator: ':', field: 2 },
  '.msb': { separator: ':', field: 2 },
}
/** ClamAV reads a line of this length and its end in one piece, and the rest of a longer one as another line. */
const maxLineBytes = 8190
const ruleKinds = ['.yar', '.yara']

const toExtension = (file: string) => extname(file).toLowerCase()
export const isRuleFile = (file: string) => ruleKinds.includes(toExtension(file))
export const isSourceFile = (file: string) => isRuleFile(file) || Object.hasOwn(lineKinds, toExtension(file))

/** The name of the signature in a line of a ClamAV file. Undefined for comments, empty lines and other text. */
export function findSignatureName(file: string, line: string): string | undefined {
  const kind = lineKinds[toExtension(file)]
  if (kind === undefined || line.startsWith('#') || line.trim() === '') return undefined
  return line.split(kind.separator, kind.field + 1)[kind.field]?.trim()
}

/** Whether ClamAV would read a line, in latin1, as several, of which `findSignatureName` finds the first name only. */
export const isTooLong = (file: string, line: string) =>
  line.length > (lineKinds[toExtension(file)]?.maxBytes ?? maxLineBytes)

/**
 * ClamAV uses such names for content that it could not scan, and Assay's own signatures for containers. A signature of
 * that name would be read as a doubt instead of a finding, and could hide one.
 */
export const isReservedName = (name: string) => /^Heuristics\./i.test(name)

/**
 * The reserved name in a reply of clamd that comes from a signature, which clamd marks, and not from ClamAV itself. The
 * trial loads no such signature, so the name was hidden from us.
 */
export function findReservedMatch(reply: string): string | undefined {
  const name = /^stream: (.+)\.UNOFFICIAL FOUND$/s.exec(reply)?.[1]
  return name !== undefined && isReservedName(name.trim()) ? name : undefined
}

const ruleComment = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
const ruleHead = /((?:\b(?:private|global)\s+)*)\brule\s+[A-Za-z_]/g
const listRuleModifiers = (text: string) =>
  [...text.replaceAll(ruleComment, ' ').matchAll(ruleHead)].map(([, found]) => found)

export const hasRule = (text: string) => listRuleModifiers(text).length > 0
/** Whether the file has a rule that is reported, and not only private ones. */
export const hasPublicRule = (text: string) => listRuleModifiers(text).some((found) => !/\bprivate\b/.test(found ?? ''))

/**
 * Makes a YARA rule private, so that it is not reported, and rules that refer to it still compile. Undefined when the
 * rule cannot be found for certain: then the whole file is held back.
 */
export function hideRule(text: string, name: string): string | undefined {
  const heads = [...text.matchAll(/^[ \t]*(?:(?:private|global)\s+)*(rule)\s+([A-Za-z_]\w*)/gm)]
  const [head, ...others] = heads.filter(([, , found]) => found === name)
  if (head === undefined || others.length > 0 || /\bprivate\b/.test(head[0])) return undefined
  const at = head.index + head[0].search(/\brule\s+[A-Za-z_]\w*$/)
  return `${text.slice(0, at)}private ${text.slice(at)}`
}

type Preset = Pick<SourceSettings, 'name' | 'url' | 'everyHours' | 'maxMegabytes'> & {
  publisher: string
  licence: string
  sha256?: string
}

/** Free sources that are well known. None is used unless the operator adds it. */
export const presets: Preset[] = [
  {
    name: 'urlhaus',
    url: 'https://urlhaus.abuse.ch/downloads/urlhaus.ndb',
    sha256: 'https://urlhaus.abuse.ch/downloads/urlhaus.ndb.sha256',
    everyHours: 6,
    maxMegabytes: 64,
    publisher: 'abuse.ch URLhaus',
    licence: 'CC0',
  },
  {
    name: 'sanesecurity-badmacro',
    url: 'https://mirror.rollernet.us/sanesecurity/badmacro.ndb',
    everyHours: 6,
    maxMegabytes: 32,
    publisher: 'Sanesecurity, by a mirror',
    licence: 'free to use; read the terms of Sanesecurity',
  },
  {
    name: 'sanesecurity-rogue',
    url: 'https://mirror.rollernet.us/sanesecurity/rogue.hdb',
    everyHours: 6,
    maxMegabytes: 32,
    publisher: 'Sanesecurity, by a mirror',
    licence: 'free to use; read the terms of Sanesecurity',
  },
  {
    name: 'interserver',
    url: 'https://sigs.interserver.net/interserver256.hdb',
    everyHours: 12,
    maxMegabytes: 64,
    publisher: 'InterServer',
    licence: 'not stated; ask the publisher',
  },
  {
    name: 'interserver-shell',
    url: 'https://sigs.interserver.net/shell.ldb',
    everyHours: 12,
    maxMegabytes: 32,
    publisher: 'InterServer',
    licence: 'not stated; ask the publisher',
  },
  {
    name: 'rfxn',
    url: 'https://www.rfxn.com/downloads/rfxn.ndb',
    everyHours: 24,
    maxMegabytes: 32,
    publisher: 'Linux Malware Detect (R-fx Networks)',
    licence: 'GPL-2.0',
  },
  {
    name: 'rfxn-hashes',
    url: 'https://www.rfxn.com/downloads/rfxn.hdb',
    everyHours: 24,
    maxMegabytes: 32,
    publisher: 'Linux Malware Detect (R-fx Networks)',
    licence: 'GPL-2.0',
  },
  {
    name: 'yara-forge-core',
    url: 'https://github.com/YARAHQ/yara-forge/releases/latest/download/yara-forge-rules-core.zip',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'YARA-Forge (YARAHQ)',
    licence: 'that of each rule, in its metadata',
  },
  {
    name: 'signature-base',
    url: 'https://github.com/Neo23x0/signature-base/archive/refs/heads/master.tar.gz',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'Neo23x0 signature-base',
    licence: 'Detection Rule License 1.1',
  },
  {
    name: 'reversinglabs',
    url: 'https://github.com/reversinglabs/reversinglabs-yara-rules/archive/refs/heads/develop.tar.gz',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'ReversingLabs',
    licence: 'MIT',
  },
]
