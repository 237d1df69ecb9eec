import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore, FeedFetcher } from '../../domain/ports/content-store.ts'
import type { UnpackBudget } from '../../domain/ports/engines.ts'
import type { ClaimedSource, HeldSignature, NewSet, RefusedFile, SourceStore } from '../../domain/ports/source-store.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import {
  findChecksum,
  findMinisignKey,
  isRuleFile,
  readMinisig,
  requireMinisign,
  SourceError,
} from '../../domain/sources.ts'
import { findProgram } from '../../engines/clamav/installation.ts'
import { makeSandboxChooser } from '../../engines/clamav/open-own-clamd.ts'
import { countSignatures } from '../../engines/clamav/signature-files.ts'
import { makeTrial, type Trial } from '../../engines/clamav/signature-library.ts'
import type { OnEscape } from '../../engines/jail/policy.ts'
import { openUnpacker } from '../../engines/unpack/open-unpacker.ts'
import { hideCredentials } from '../../runtime/hide-credentials.ts'
import type { Logger } from '../../runtime/logger.ts'
import { collectFiles } from './collect-files.ts'
import { listKnownGood, type TriedFiles, tryRules } from './trial.ts'
import { trySignatures } from './try-signatures.ts'

export type UpdateDeps = {
  store: SourceStore
  fetcher: FeedFetcher
  contents: ContentStore
  log: Logger
  onEscape?: OnEscape | undefined
  /** Directories of this machine with known-good files; tests give smaller ones. */
  knownGoodDirs?: string[]
  /** Finds the program of clamd; tests let it be missing. */
  findClamd?: (() => string | undefined) | undefined
  downloadMs?: number
  /** Limits of an archive, which tests make smaller. */
  limits?: UnpackBudget
}

type UpdateResult = { state: 'changed' | 'unchanged' | 'failed' | 'lost'; error?: string }

const megabyte = 1024 * 1024
const downloadMs = 300_000
const totalMs = 30 * 60_000
const maxReasonLength = 300
const noValidators = { etag: null, lastModified: null }
/** Checksums and signatures are far smaller. */
const maxProofBytes = megabyte

/** Returns a function that updates a claimed source, and records the result. It throws only when `signal` aborts. */
export function makeUpdateSource(config: Config, deps: UpdateDeps) {
  const { store, log } = deps

  return async (claimed: ClaimedSource, stopping: AbortSignal): Promise<UpdateResult> => {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(totalMs)])
    try {
      return await withSet(config, claimed, { ...deps, signal }, async (set) => {
        stopping.throwIfAborted()
        const isRecorded = await (set === undefined ? store.recordUnchanged(claimed) : store.recordSet(claimed, set))
        if (!isRecorded) return { state: 'lost' }
        if (set !== undefined) logSet(log, claimed.name, set)
        return { state: set === undefined ? 'unchanged' : 'changed' }
      })
    } catch (error) {
      stopping.throwIfAborted()
      const reason = signal.aborted ? `The update took more than ${totalMs / 60_000} minutes.` : toReason(error)
      log.warn({ source: claimed.name, reason }, 'a source could not be updated; the signatures in use stay')
      if (!isExpected(error)) log.error({ err: error, source: claimed.name }, 'the update of a source failed')
      return { state: (await store.recordFailure(claimed, reason)) ? 'failed' : 'lost', error: reason }
    }
  }
}

const isExpected = (error: unknown) => error instanceof SourceError || error instanceof OperatorMistake
const toReason = (error: unknown) =>
  hideCredentials(error instanceof Error ? error.message : String(error)).slice(0, maxReasonLength)

function logSet(log: Logger, source: string, { signatures, held, refused }: NewSet) {
  const line = { source, signatures, held: held.map(({ name }) => name).slice(0, 20), refused: refused.length }
  log.info(line, 'new signatures of a source are in use')
}

type Deps = UpdateDeps & { signal: AbortSignal }

/**
 * Downloads, checks, unpacks and tries a set, whose files exist while `use` runs. The set is undefined when the publisher
 * has nothing new.
 */
async function withSet<T>(
  config: Config,
  source: ClaimedSource,
  deps: Deps,
  use: (set: NewSet | undefined) => Promise<T>,
): Promise<T> {
  const { contents, signal, log, onEscape } = deps
  const fetched = await deps.fetcher.fetchIfChanged(source.url, {
    maxBytes: source.maxMegabytes * megabyte,
    totalMs: deps.downloadMs ?? downloadMs,
    signal,
    contents,
    validators: source.validators,
  })
  if ('isUnchanged' in fetched) return use(undefined)
  if ('failure' in fetched) throw new SourceError(fetched.reason)
  const { content, validators } = fetched
  const incoming = join(resolve(config.dataDir), 'signatures', 'incoming')
  await removeAbandoned(incoming)
  const dir = join(incoming, randomUUID())
  const unpacker = openUnpacker({ log, onEscape })
  try {
    const fileName = toFileName(source)
    await requireChecksum(content, source, fileName, deps)
    await requireSignature(content, source, deps)
    const files = await collectFiles(
      content,
      { source: source.name, fileName, dir },
      { contents, unpacker, signal, limits: deps.limits },
    )
    const tried = await tryFiles(config, files, source, deps)
    // A file that was refused is tried again with the next update, also when the publisher has nothing new.
    const isComplete = tried.refused.length === 0
    return await use({ ...(await toSet(tried)), validators: isComplete ? validators : noValidators })
  } finally {
    await unpacker.close()
    await content.release()
    await rm(dir, { recursive: true, force: true })
  }
}

/** Removes the files of killed processes, by the clock of this machine: no update takes that long. */
async function removeAbandoned(incoming: string) {
  for (const name of await readdir(incoming).catch(() => [])) {
    const path = join(incoming, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < Date.now() - 2 * totalMs)
      await rm(path, { recursive: true, force: true })
  }
}

/** The name of the file that the URL leads to. */
const toFileName = ({ url, fileName }: Pick<ClaimedSource, 'url' | 'fileName'>) =>
  fileName ?? decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '')

async function requireChecksum({ sha256 }: Content, source: ClaimedSource, fileName: string, deps: Deps) {
  if (source.sha256 === null) return
  const expected = /^[0-9a-f]{64}$/i.test(source.sha256)
    ? source.sha256.toLowerCase()
    : findChecksum(await readProof(source.sha256, deps), fileName)
  if (expected !== sha256) throw new SourceError(`The SHA-256 of the download is ${sha256}, and should be ${expected}.`)
}

async function requireSignature(content: Content, { url, minisignKey }: ClaimedSource, deps: Deps) {
  if (minisignKey === null) return
  const key = findMinisignKey(minisignKey)
  if (key === undefined) throw new SourceError('The minisign key of the source is not valid.')
  const address = new URL(url)
  address.pathname += '.minisig'
  const found = readMinisig(await readProof(address.href, deps))
  const hash = createHash('blake2b512')
  const chunks: Buffer[] = []
  for await (const chunk of content.read()) {
    if (found.isPrehashed) hash.update(chunk)
    else chunks.push(Buffer.from(chunk))
  }
  requireMinisign(key, found, found.isPrehashed ? hash.digest() : Buffer.concat(chunks))
}

/** Downloads a small text that proves the content: a list of checksums, or a signature. */
async function readProof(url: string, { fetcher, contents, signal, ...deps }: Deps): Promise<string> {
  const fetched = await fetcher.fetchIfChanged(url, {
    maxBytes: maxProofBytes,
    totalMs: deps.downloadMs ?? downloadMs,
    signal,
    contents,
    validators: noValidators,
  })
  if (!('content' in fetched)) {
    throw new SourceError(`${hideCredentials(url)}: ${'reason' in fetched ? fetched.reason : 'There is no content.'}`)
  }
  try {
    const chunks: Buffer[] = []
    for await (const chunk of fetched.content.read()) chunks.push(Buffer.from(chunk))
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    await fetched.content.release()
  }
}

/** Tries the files on known-good ones. Throws when they cannot be tried: they must not be used then. */
async function tryFiles(
  config: Config,
  files: Awaited<ReturnType<typeof collectFiles>>,
  { released }: ClaimedSource,
  { contents, signal, log, onEscape, knownGoodDirs, findClamd }: Deps,
): Promise<Tried> {
  const ownDir = config.knownGoodDir
  const known = await listKnownGood({ ownDir, ...(knownGoodDirs === undefined ? {} : { dirs: knownGoodDirs }) })
  if (known.length === 0) throw new SourceError('There are no known-good files to try the signatures on.')
  const corpus = { paths: known.map(({ path }) => path), contents, signal }
  const ruleFiles = files.filter(({ name }) => isRuleFile(name))
  const clamFiles = files.filter((file) => !ruleFiles.includes(file))
  const none: TriedFiles = { used: [], keep: [], held: [], refused: [], scanned: 0 }
  const signatures =
    clamFiles.length === 0
      ? none
      : await trySignatures(clamFiles, { trial: openTrial(config, { onEscape, findClamd }), corpus, released })
  const rules =
    ruleFiles.length === 0 ? { ...none, hiddenRules: 0 } : await tryRules(ruleFiles, { corpus, released, log })
  const refused = [...signatures.refused, ...rules.refused]
  const used = [...signatures.used, ...rules.used]
  const held = [...signatures.held, ...rules.held]
  if (used.length === 0) throw new SourceError(`No file of the source can be used. ${toCause(refused, held)}`)
  return {
    used,
    keep: [...signatures.keep, ...rules.keep],
    held,
    refused: refused.map(({ file, reason }) => ({ file, reason: reason.slice(0, maxReasonLength) })),
    scanned: Math.min(countScanned(signatures), countScanned(rules)),
    hiddenRules: rules.hiddenRules,
  }
}

/** Known-good files that all files of one kind were tried on; a kind without files limits nothing. */
const countScanned = ({ used, scanned }: TriedFiles) => (used.length > 0 ? scanned : Number.POSITIVE_INFINITY)

/** Tells why nothing of a set can be used. The names are those that the operator may release. */
function toCause([refused]: RefusedFile[], held: HeldSignature[]): string {
  if (refused !== undefined) return `${refused.file}: ${refused.reason}`
  return `All signatures match known-good files: ${held.map(({ name, file }) => `${name} (${file})`).join(', ')}`
}

type Tried = TriedFiles & { hiddenRules: number }

function openTrial(
  config: Config,
  { onEscape, findClamd = () => findProgram('clamd') }: Pick<UpdateDeps, 'onEscape' | 'findClamd'>,
): Trial {
  const binary = findClamd()
  if (binary === undefined) {
    throw new SourceError('clamd is not installed on this node, so the signatures cannot be tried. They are not used.')
  }
  const dataDir = resolve(config.dataDir)
  const options = { binary, dataDir, scratchMegabytes: 256, acceptsDisk: config.scratch === 'disk' }
  const { user, chooseForDir } = makeSandboxChooser(options)
  return makeTrial({ binary, dataDir, user, chooseSandbox: chooseForDir, onEscape })
}

async function toSet({ used, keep, held, refused, scanned, hiddenRules }: Tried) {
  let signatures = -hiddenRules
  for (const { name, path } of used) {
    const { size, mtimeMs } = await stat(path)
    signatures += await countSignatures({ path, loadedAs: name, bytes: size, changedMs: mtimeMs })
  }
  const files = used.map(({ name, path }) => ({ name, read: () => readFile(path) }))
  return { files, keep, signatures: Math.max(0, signatures), held, refused, testedFiles: scanned }
}
