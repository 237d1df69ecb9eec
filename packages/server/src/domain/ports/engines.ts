import type { Content } from '../content/content.ts'

/** A reason not to call content clean although nothing was found: a part of it was not scanned. */
export type Doubt = 'EncryptedContent' | 'UnsupportedContainer' | 'ScanLimitExceeded'

export type EngineReport = {
  /** Names of the matching signatures, without the prefix that results add. */
  findings: string[]
  doubts: Doubt[]
  /** The engine met a container that it cannot open, or bytes in which one may begin, at any depth. */
  suspectsContainer: boolean
  /** A part of the content was certainly a container: it must be opened, or there is a doubt. */
  hasUnopened?: boolean
  /** Why an advisory engine has no opinion of the content. A required engine throws instead. */
  failure?: string
  /** The operator does not want this engine to see such content, so it has no opinion. */
  isSkipped?: boolean
}

/** Where content comes from: depth 0 is the file itself, and its members are below. */
export type ContentPlace = { depth: number; name: string }

export type EngineState = {
  /** `ClamAV 1.4.6` */
  version: string
  /**
   * Identifies everything that a verdict depends on: the engine, its settings and its signatures. The verdict cache
   * keeps results under it. Undefined when the engine cannot tell; then nothing is cached.
   */
  verdictVersion: string | undefined
  /** The number of signatures; undefined when the engine does not tell. */
  signatures: number | undefined
  /** ClamAV: build time of its official databases, undefined when they are missing. YARA: last change of a rule file. */
  signaturesAt: Date | undefined
}

/** The subject of an engine: malware in any content, or NSFW content in images. */
export type EngineKind = 'malware' | 'image'

export type ScanEngine = {
  name: string
  kind: 'malware'
  /** The engine scans the members of containers. For an engine that does not, Assay unpacks them. */
  opensContainers: boolean
  /** The engine has Assay's signatures that report bytes in which a container may begin, at any depth. */
  marksContainers(): boolean
  /** Undefined while the engine cannot scan. */
  findState(): EngineState | undefined
  /** Scans all of the content. Throws `EngineDown` when the engine cannot answer. */
  scan(content: Content, work: Work, place?: ContentPlace): Promise<EngineReport>
  /** The findings are what the operator knows, not opinions: they make a threat whatever engines vote. */
  isCertain?: true
  /** Set for an engine of the operator that runs outside of Assay. */
  external?: ExternalStatus
}

/** The part of an engine outside of Assay that operators see. */
export type ExternalStatus = {
  /** The kind in `assay.toml`, such as `clamd`. */
  kind: string
  isRequired: boolean
  findHealth(): EngineHealth
}

export type EngineHealth = {
  /** `open` while the engine does not answer: scans do not wait for it, and the service tries it again and again. */
  breaker: 'closed' | 'open'
  /** The reason of the last failure, while the engine has not answered since. */
  fault: string | undefined
  scans: number
  failures: number
  /** Milliseconds of recent scans; undefined before the first. */
  p50: number | undefined
  p99: number | undefined
}

/** The place of a background job among others that wait for the same resource. */
export type JobTurn = {
  accountId: string
  /** Jobs of an account with a smaller number come first. */
  order: number
  /** Aborted when the service stops: the job must not wait any longer. */
  stopping: AbortSignal
}

/** A scan, as engines and shared resources see it. */
export type Work = {
  /** Ends the scan. */
  signal: AbortSignal
  /** The account of the scan: resources are divided between accounts. */
  accountId?: string
  /** Undefined while a caller waits for the result: such work comes before background jobs. */
  job?: JobTurn
  /** Called when the scan begins to wait for a resource; the returned function, when the wait is over. */
  onWait?(): () => void
  /**
   * Called when a process begins to work for the scan; the returned function, when it has ended. `isShared` is for a
   * process that works for several scans at once.
   */
  onUse?(pid: number, isShared: boolean): () => void
}

/** The engine crashed, hangs or is not running. Never becomes a verdict. */
export class EngineDown extends Error {}

/** The engine has too many scans waiting. A later attempt may succeed. */
export class EngineBusy extends EngineDown {}

/** The machine gave the engine too little processor time. Unlike an overload, this counts as an attempt of a job. */
export class EngineStarved extends EngineBusy {}

/** The scores of the labels, which sum to 1. */
export type Scores = { clean: number; pornography: number; sexy: number }

/** Why a picture, or a part of it, was not classified. */
export type Unscanned = 'UnsupportedImage' | 'ScanLimitExceeded'

export type ImageReport =
  /**
   * The scores of every classified view, at least one. `index` counts all frames of the picture from 0. A frame with
   * several views is listed several times. With a doubt, a part of the picture was not classified: it may be a threat,
   * but it is not clean.
   */
  | { frames: (Scores & { index: number })[]; framesTotal: number; isAnimated: boolean; doubt?: Unscanned }
  /** The picture cannot be decoded, or exceeds a limit. It is not clean, because it was not scanned. */
  | { unscanned: Unscanned }

export type ImageEngine = {
  name: string
  kind: 'image'
  /** Undefined while the engine cannot scan. */
  findState(): EngineState | undefined
  /** Throws `EngineDown` when the engine cannot answer. */
  classify(content: Content, work: Work): Promise<ImageReport>
}

/**
 * The most that one scan unpacks, at all depths together. A single member can be that large, so ClamAV's own limits
 * have this value too: above a lower one it would answer OK for content that it did not read.
 */
export const maxUnpackedBytes = 1000 * 1024 * 1024

/** The amount that one scan may still unpack, at all depths together. The unpacker subtracts from it. */
export type UnpackBudget = { members: number; bytes: number }

/**
 * The treatment of members that ClamAV has certainly scanned as part of the content.
 *
 * - `give`: they are given like all others.
 * - `search`: text in which nothing can hide is left out. For content in which some member may hold other content.
 * - `skip`: they are left out unless they can hold content by their first bytes.
 */
export type SeenMembers = 'give' | 'search' | 'skip'

export type Unpacker = {
  /**
   * Passes the members of the container to `take`, one after the other. The path is empty for a member without a name,
   * as in a compressed file. Returns the doubts about parts that could not be opened; none when `take` got every byte
   * of every member.
   */
  unpack(
    content: Content,
    options: {
      take(member: { path: string; bytes: AsyncIterable<Buffer> }): Promise<void>
      budget: UnpackBudget
      work: Work
      /** `give` when it is not set. */
      seen?: SeenMembers
    },
  ): Promise<Doubt[]>
}
