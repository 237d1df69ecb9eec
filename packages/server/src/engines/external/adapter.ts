import type { Content } from '../../domain/content/content.ts'
import { type Doubt, EngineDown } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'
import type { OnEscape } from '../jail/escape.ts'

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
