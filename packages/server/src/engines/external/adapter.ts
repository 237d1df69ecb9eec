import { createHash } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Content } from '../../domain/content/content.ts'
import { type Doubt, EngineDown } from '../../domain/ports/engines.ts'
import { defaultVoteRule, type VoteRule } from '../../domain/scans/ballot.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'
import type { OnEscape } from '../jail/policy.ts'

export type Answer = {
  /** Names of what was found. An empty list says that the engine read all of the content and found nothing. */
  findings: string[]
  version: string | undefined
  /** Parts of the content that the engine says it did not read. */
  doubts?: Doubt[]
  /** A sentence about what the engine lacks, such as recent signatures, where it found nothing. */
  degraded?: string
}

/** `scanId` is the same for all attempts of a scan, so that an engine can tell a repeated request from a new one. */
type ScanOptions = { signal: AbortSignal; fileName: string; scanId?: string }

/**
 * An engine outside of Assay. `scan` throws `EngineDown` when the engine cannot answer, and for any answer that it does
 * not understand: an unreadable or cut answer is never clean. The caller bounds time, retries and concurrency; `signal`
 * is aborted when no caller waits for the answer any more.
 */
export type ExternalAdapter = {
  scan(content: Content, options: ScanOptions): Promise<Answer>
  close(): Promise<void>
}

/** The engine works, but does not take this content. Another attempt would end the same, so there is none. */
export class ContentRefused extends EngineDown {}

export type AdapterDeps = {
  /** The name of the engine in assay.toml. */
  name: string
  /** Scans that run at once, at most: as many connections or processes are of use. */
  concurrency: number
  /** The data directory of the service. */
  dataDir: string
  /** The operator accepts that content lies unencrypted on a disk where there is no file system in memory. */
  acceptsDisk: boolean
  log: Logger
  onEscape?: OnEscape | undefined
}

/** A kind of engine: `read` reads its own options, with mistakes noted in the reader, and returns how to open it. */
export type ExternalKind = {
  read(options: OptionReader): (deps: AdapterDeps) => ExternalAdapter | Promise<ExternalAdapter>
}

/** Options that every kind of engine has. */
export type CommonOptions = {
  name: string
  kind: string
  isRequired: boolean
  timeoutMs: number
  retries: number
  concurrency: number
  seesMembers: boolean
  minBytes: number
  maxBytes: number
  /** Media types, such as `application/pdf` or `image/*`; undefined for all. */
  types: string[] | undefined
  skipTypes: string[] | undefined
  /** How long verdicts with this engine may be taken from the cache; 0 for never. */
  cacheMs: number
  /** Pause between two checks of an engine that has no work. */
  checkMs: number
}

/** Options that say how the findings of an engine count; engines of Assay itself have them too. */
export function readVoteRule(options: OptionReader): VoteRule {
  const weights = { min: 0, max: 9 }
  const weight = options.number('weight', { ...weights, fallback: defaultVoteRule.weight })
  return {
    weight,
    heuristics: options.pattern('heuristics', defaultVoteRule.heuristics),
    heuristicWeight: options.number('heuristic_weight', { ...weights, fallback: weight }),
  }
}

const mediaType = /^[a-z]+\/(?:\*|[\w.+-]+)$/
const mediaTypesMust = 'must be a list of media types such as ["application/pdf", "image/*"]'
const maxContentBytes = 1_000_000_000_000

export function readCommonOptions(
  options: OptionReader,
  { name, kind }: { name: string; kind: string },
): CommonOptions {
  const bytes = (option: string, fallback: number) =>
    options.wholeNumber(option, { min: 0, max: maxContentBytes, fallback })
  return {
    name,
    kind,
    isRequired: options.flag('required', true),
    timeoutMs: options.duration('timeout', { min: 100, max: 200_000, fallback: 30_000 }),
    retries: options.wholeNumber('retries', { min: 0, max: 5, fallback: 1 }),
    concurrency: options.wholeNumber('concurrency', { min: 1, max: 256, fallback: 8 }),
    seesMembers: options.oneOf('sees', ['files', 'members'], 'files') === 'members',
    minBytes: bytes('min_bytes', 0),
    maxBytes: bytes('max_bytes', maxContentBytes),
    types: options.texts('types', mediaType, mediaTypesMust),
    skipTypes: options.texts('skip_types', mediaType, mediaTypesMust),
    cacheMs: options.duration('cache', { min: 0, max: 86_400_000, fallback: 0 }),
    checkMs: options.duration('check_every', { min: 1000, max: 3_600_000, fallback: 30_000 }),
  }
}

/** Options of a TLS connection, as `tls.connect` takes them. */
export type TlsOptions = { ca?: string; cert?: string; key?: string; servername?: string }

const pem = /-----BEGIN [A-Z ]+-----/

/**
 * Reads `ca_file`, `cert_file`, `key_file` and `servername`. The certificate of the server is always checked: against the
 * file, or against the authorities that Node knows.
 */
export function readTlsOptions(options: OptionReader): TlsOptions {
  const ca = options.file('ca_file')
  const cert = options.file('cert_file')
  const key = options.secret('key', pem, 'must be a private key in PEM form')
  const servername = options.text('servername')
  if ((cert === undefined) !== (key === undefined)) {
    options.note('cert_file', 'and key_file go together: set both or neither')
    return {}
  }
  const found = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
  }
  try {
    createSecureContext(found)
  } catch (error) {
    options.note('ca_file', `and the other files for TLS cannot be used: ${(error as Error).message}`)
  }
  return found
}

/** The name of a finding for which the engine gives none. */
export const unnamedThreat = 'UnnamedThreat'

/** Longer texts and more lines of an engine are not matched, because patterns may take quadratic time. */
export const maxMatchedLength = 1000
const maxMatchedLines = 300

/**
 * Lists the names that the operator's pattern finds, line by line. `isReadable` is false when the output has a line that
 * is too long, or too many lines: such output does not say that nothing was found.
 */
export function listMatchedNames(output: string, { source }: RegExp): { names: string[]; isReadable: boolean } {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const readable = lines.slice(0, maxMatchedLines).filter(({ length }) => length <= maxMatchedLength)
  const pattern = new RegExp(source, 'gmu')
  const names = readable.flatMap((line) => [...line.matchAll(pattern)].map(toMatchedName))
  return { names: [...new Set(names)], isReadable: readable.length === lines.length }
}

/** The name that a match of the operator's pattern gives: its first group, or all of it. */
export const toMatchedName = (match: RegExpExecArray): string => (match[1] ?? match[0]).trim() || unnamedThreat

const probeLine = Buffer.from('A harmless line by which Assay finds out whether an engine answers.\n')

/** Content that every engine should call clean: one line, or so many bytes of lines. */
export function newProbeContent(bytes = probeLine.length): Content {
  const text = Buffer.alloc(bytes, probeLine)
  const toHash = (name: 'sha1' | 'sha256') => createHash(name).update(text).digest('hex')
  return {
    bytes: text.length,
    head: text,
    sha1: toHash('sha1'),
    sha256: toHash('sha256'),
    isInMemory: true,
    whole: text,
    async *read(start = 0, end = text.length) {
      yield text.subarray(start, end)
    },
    async release() {},
  }
}
