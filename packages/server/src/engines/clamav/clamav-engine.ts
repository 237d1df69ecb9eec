import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { mayHoldContent } from '../../domain/content/container.ts'
import type { Content } from '../../domain/content/content.ts'
import {
  type Doubt,
  EngineBusy,
  EngineDown,
  type EngineReport,
  EngineStarved,
  type EngineState,
  maxUnpackedBytes,
  type ScanEngine,
  type Work,
} from '../../domain/ports/engines.ts'
import { makeSemaphore, shareWithCallers } from '../../domain/semaphore.ts'
import type { ClamdClient } from './client.ts'

/** Scans that may take seconds and are in clamd at once. */
const costlyScans = shareWithCallers(Math.max(3, 2 * availableParallelism() - 1))
/** Beside the scans of others, the costly scans of an account leave one processor to them. */
const perAccountBesideOthers = Math.max(1, availableParallelism() - 1)
/** Threads of clamd: for costly scans, for small content, and for PING. */
export const threadCount = costlyScans.count + 4

const restartMs = 10_000
const pollMs = 50

/**
 * Repeats a scan once when clamd did not answer and is back, but not a second time: content that crashed clamd twice
 * would crash it again.
 */
export function makeClamAvEngine(deps: {
  client: Pick<ClamdClient, 'scan' | 'sendCommand'>
  findState(): EngineState | undefined
  marksContainers(): boolean
  /** Undefined for a clamd that the operator runs: its scratch directory is not ours. */
  scratch?: ScratchBudget
  onRetry(error: EngineDown): void
}): ScanEngine {
  const { client, scratch } = deps
  const costly = makeSemaphore({ ...costlyScans, perAccountBesideOthers, maxWaiting: 10_000, maxWaitMs: 20_000 })

  async function scanOnce(content: Content, work: Work): Promise<EngineReport> {
    const scanNow = async () => toReport(await client.scan(content, work))
    const scan = () => (isCostly(content) ? costly.use(scanNow, work) : scanNow())
    costly.noteAccount(work)
    try {
      return await (scratch === undefined ? scan() : scratch.use(content, scan, work))
    } catch (error) {
      // Alone in its scratch directory, clamd cannot unpack this content: that is a limit of the content.
      if (error instanceof ScratchFull && scratch !== undefined) return unscannable
      throw error
    }
  }

  return {
    name: 'ClamAV',
    kind: 'malware',
    opensContainers: true,
    marksContainers: deps.marksContainers,
    findState: deps.findState,
    async scan(content, work) {
      const { signal } = work
      try {
        return await scanOnce(content, work)
      } catch (error) {
        if (signal.aborted || error instanceof EngineBusy || !(error instanceof EngineDown)) throw error
        deps.onRetry(error)
        await waitUntilBack(client, signal)
        return await scanOnce(content, work)
      }
    },
  }
}

async function waitUntilBack(client: Pick<ClamdClient, 'sendCommand'>, signal: AbortSignal) {
  const deadline = performance.now() + restartMs
  for (;;) {
    const answer = await client.sendCommand('PING', 1000).catch(() => undefined)
    if (answer === 'PONG') return
    if (performance.now() > deadline) throw new EngineDown(`clamd did not answer again within ${restartMs / 1000} s`)
    await sleep(pollMs, undefined, { signal })
  }
}

/** Alerts about content that ClamAV could not scan. They are not findings. */
const doubtsByPrefix: [prefix: string, doubt: Doubt][] = [
  ['Heuristics.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Assay.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Limits.Exceeded', 'ScanLimitExceeded'],
]
/** Alerts of Assay's own signatures about containers that ClamAV cannot open. clamd tries them at every depth. */
const unopenedPrefix = 'Heuristics.Assay.Container.'
/** Alerts of Assay's own signatures about bytes in which a container may begin. */
const searchPrefix = 'Heuristics.Assay.Search.'

const unscannable: EngineReport = { findings: [], doubts: ['ScanLimitExceeded'], suspectsContainer: false }

/** The replies of a clamd that cannot create or write a file in its scratch directory. */
const scratchFailure = /(?:write|writing|creat\w*|open) (?:to )?(?:a )?(?:temporary )?(?:file|directory)/i

/** Only the exact reply `stream: OK` means that nothing was found. An unknown or missing reply throws. */
export function toReport(reply: string): EngineReport {
  if (reply === 'stream: OK') return { findings: [], doubts: [], suspectsContainer: false }
  const alert = /^stream: (.+) FOUND$/s.exec(reply)?.[1]
  if (alert !== undefined) return toAlertReport(alert)
  if (reply.startsWith('INSTREAM size limit exceeded')) return unscannable
  if (scratchFailure.test(reply)) throw new ScratchFull(`clamd replied: ${reply}`)
  throw new EngineDown(reply === '' ? 'clamd closed the connection without a reply' : `clamd replied: ${reply}`)
}

function toAlertReport(alert: string): EngineReport {
  // The limit is one of elapsed time: on a quiet machine the same content may be scanned to its end.
  if (alert.startsWith('Heuristics.Limits.Exceeded.MaxScanTime')) throw new EngineStarved('clamd had too little time')
  const doubt = doubtsByPrefix.find(([prefix]) => alert.startsWith(prefix))?.[1]
  if (doubt !== undefined) return { findings: [], doubts: [doubt], suspectsContainer: false }
  if (alert.startsWith(unopenedPrefix)) return { findings: [], doubts: [], suspectsContainer: true, hasUnopened: true }
  if (alert.startsWith(searchPrefix)) return { findings: [], doubts: [], suspectsContainer: true }
  // clamd marks every signature that is not its own, and every YARA rule.
  const name = alert.replace(/\.UNOFFICIAL$/, '').replace(/^YARA\./, '')
  return { findings: [name], doubts: [], suspectsContainer: false }
}

/** Small content that holds no other needs no room in the scratch directory: all kept connections together need a few megabytes for it. */
const freeBytes = 256 * 1024
const megabyte = 2 ** 20
const maxScratchWaitMs = 30_000
/** The part of the scratch directory that background jobs leave free for callers. */
const reservedPart = 1 / 4
/** Content that holds other content rarely becomes larger than this many times its size; bombs do. */
const usualRatio = 100

/**
 * Divides the scratch directory of clamd between scans, so that what one scan unpacks cannot take the room of another.
 * Each reserves what content of its size usually needs, and waits while there is no room. Where that was too little,
 * clamd fails, for the content that took too much or for another: then the scan is repeated with the whole directory
 * for itself.
 */
export function makeScratchBudget({ megabytes }: { megabytes: number }) {
  const reserved = Math.floor(megabytes * reservedPart)
  const semaphore = makeSemaphore({ count: megabytes, maxWaiting: 10_000, maxWaitMs: maxScratchWaitMs, reserved })

  return {
    /** Rejects with `ScratchFull` only when the whole directory is too small for the content. */
    async use<T>(content: Content, scan: () => Promise<T>, work: Work): Promise<T> {
      const weight = Math.min(megabytes, estimateMegabytes(content))
      try {
        return weight === 0 ? await scan() : await semaphore.use(scan, work, weight)
      } catch (error) {
        if (!(error instanceof ScratchFull) || weight === megabytes) throw error
        return await semaphore.use(scan, work, megabytes)
      }
    },
  }
}

export type ScratchBudget = ReturnType<typeof makeScratchBudget>

/** clamd could not write to its scratch directory, because it is full. */
export class ScratchFull extends EngineBusy {}

/** Content that holds other content, or is large, may take clamd seconds. All other content takes milliseconds. */
const isCostly = (content: Content) => estimateMegabytes(content) > 0

function estimateMegabytes(content: Content): number {
  const { bytes } = content
  if (!mayHoldContent(content)) return bytes <= freeBytes ? 0 : Math.ceil(bytes / megabyte)
  return Math.ceil((bytes + Math.min(maxUnpackedBytes, bytes * usualRatio)) / megabyte)
}
