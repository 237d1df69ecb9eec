import { randomUUID } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'
import { newMultipartParser } from '../../domain/content/multipart.ts'
import { Problem } from '../../domain/problem.ts'
import { toContentName } from '../../domain/scans/check-submission.ts'
import type { Scan } from '../../domain/scans/scan.ts'
import { type ListenerScan, type ListenerScans, type ScanFailure, toScanFailure } from '../listener-scan.ts'
import type { Message } from './icap-request.ts'

export type Decision =
  | { is: 'pass' }
  | { is: 'threat'; name: string; reference: string }
  /** The content itself is the reason why it was not scanned, or not completely. */
  | { is: 'unscanned'; name: string; reference: string }
  /** The content is not the reason: the proxy's policy for a failing service decides. */
  | ({ is: 'failed' } & ScanFailure)

export type MessageScanDeps = {
  scans: ListenerScans
  reportUnscanned(about: { reference: string; reason: string }): void
}

/** Scans the body of one message: the body as a whole and, in a form, each file as well. */
export function newMessageScan(message: Message, deps: MessageScanDeps) {
  const form = message.boundary === undefined ? undefined : newFormScans(message.boundary, deps)
  let whole: ListenerScan | undefined
  let decision: Decision | undefined

  return {
    async begin() {
      if (message.obstacle !== undefined) decision = toUnscanned(message.obstacle, deps)
      else {
        try {
          whole = await deps.scans.begin()
        } catch (error) {
          decision = toFailed(error)
        }
      }
    },
    /** Returns a decision once the rest of the body cannot change it. */
    findDecision: () => decision,
    async write(chunk: Buffer) {
      try {
        await form?.write(chunk)
        await whole?.write(chunk)
      } catch (error) {
        decision = isRefusal(error, 'content-too-large') ? toUnscanned('ContentTooLarge', deps) : toFailed(error)
      }
    },
    /** Returns the content that was written so far, unscanned. */
    takeContent: async (): Promise<Content | undefined> => whole?.takeContent(),
    /** Completes the scan. `content` is the body, if it was scanned and may have to be sent back. */
    async finish(): Promise<{ decision: Decision; content?: Content | undefined }> {
      if (decision !== undefined) return { decision }
      const formDecision = await form?.finish()
      if (formDecision?.is === 'threat' || formDecision?.is === 'failed') return { decision: formDecision }
      const finished = await finishWhole()
      return finished.decision.is === 'pass' && formDecision !== undefined
        ? { ...finished, decision: formDecision }
        : finished
    },
    async abort() {
      await form?.abort()
      await whole?.abort()
    },
  }

  async function finishWhole(): Promise<{ decision: Decision; content?: Content | undefined }> {
    try {
      if (whole === undefined) throw new Error('The scan neither started nor failed')
      const scanned = await whole.finish(message.contentName)
      return scanned === undefined
        ? { decision: { is: 'pass' } }
        : { decision: toDecision(scanned.scan), content: scanned.content }
    } catch (error) {
      return { decision: toFailed(error) }
    }
  }
}

function toDecision({ id, status, signals }: Scan): Decision {
  if (status === 'clean') return { is: 'pass' }
  const name = (signals ?? []).map((signal) => signal.replace(/^(Virus|Error):/, '')).join(', ')
  return { is: status === 'threat' ? 'threat' : 'unscanned', name, reference: id }
}

const toFailed = (error: unknown): Decision => ({ is: 'failed', ...toScanFailure(error) })

function toUnscanned(reason: string, { reportUnscanned }: MessageScanDeps): Decision {
  const reference = randomUUID()
  reportUnscanned({ reference, reason })
  return { is: 'unscanned', name: reason, reference }
}

const isRefusal = (error: unknown, kind: string) => error instanceof Problem && error.refusal.kind === kind

const maxParts = 1000

type Step = { does: 'open'; name: string | null } | { does: 'write'; bytes: Buffer } | { does: 'end' }

/**
 * Scans each file of a form separately. Engines do not parse forms, so in the form as a whole a signature would look
 * for malware at the wrong offset.
 */
function newFormScans(boundary: string, deps: MessageScanDeps) {
  const steps: Step[] = []
  const parser = newMultipartParser({
    boundary,
    maxParts,
    openPart({ isFile, filename }) {
      if (!isFile) return { write() {}, end() {} }
      steps.push({ does: 'open', name: toContentName({ fields: {}, partName: filename }) })
      return {
        // The bytes are copied, because the scan of the form as a whole keeps the originals.
        write: (bytes) => void steps.push({ does: 'write', bytes: Buffer.from(bytes) }),
        end: () => void steps.push({ does: 'end' }),
      }
    },
  })
  let currentFile: { scan: ListenerScan; name: string | null } | undefined
  let worstDecision: Decision | undefined
  /** True once no further file can change the decision. */
  let isDecided = false

  return {
    async write(chunk: Buffer) {
      if (!isDecided) await runSteps(() => parser.push(chunk))
    },
    /** Returns the decision against the form, or undefined when none of its files is a reason for one. */
    async finish(): Promise<Decision | undefined> {
      if (!isDecided) await runSteps(() => parser.finish())
      return worstDecision
    },
    abort: async () => currentFile?.scan.abort(),
  }

  async function runSteps(parse: () => void) {
    try {
      parse()
      for (const step of steps.splice(0)) await runStep(step)
    } catch (error) {
      isDecided = true
      // Parsers disagree on a malformed form, so its receiver may find another file than the one that was scanned.
      worstDecision = isRefusal(error, 'malformed-request') ? toUnscanned('MalformedForm', deps) : toFailed(error)
    }
  }

  async function runStep(step: Step) {
    if (step.does === 'open') currentFile = { scan: await deps.scans.begin(), name: step.name }
    else if (step.does === 'write') await currentFile?.scan.write(step.bytes)
    else if (currentFile !== undefined) {
      const { scan, name } = currentFile
      try {
        const scanned = await scan.finish(name)
        if (scanned !== undefined) addDecision(toDecision(scanned.scan))
      } finally {
        currentFile = undefined
        await scan.abort()
      }
    }
  }

  function addDecision(decision: Decision) {
    if (decision.is === 'threat') isDecided = true
    if (decision.is === 'threat' || (decision.is === 'unscanned' && worstDecision === undefined))
      worstDecision = decision
  }
}
