import { randomUUID } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'
import { newMultipartParser } from '../../domain/content/multipart.ts'
import { Problem } from '../../domain/problem.ts'
import { toContentName } from '../../domain/scans/check-submission.ts'
import type { Scan } from '../../domain/scans/scan.ts'
import { type ListenerScan, type ListenerScans, toErrorVerdict, toVerdict, type Verdict } from '../listener-scan.ts'
import type { Message } from './icap-request.ts'

/** The verdict on a message. `reference` is the id of a scan, or an id in the log. */
export type Decision = { verdict: Verdict; reference: string }

export const cleanDecision: Decision = { verdict: { is: 'clean' }, reference: '' }

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
      if (message.obstacle !== undefined) decision = toNotScanned(message.obstacle, deps)
      else {
        try {
          whole = await deps.scans.begin()
        } catch (error) {
          decision = toErrorDecision(error, deps)
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
        decision = toErrorDecision(error, deps)
      }
    },
    /** Returns the content that was written so far, unscanned. */
    takeContent: async (): Promise<Content | undefined> => whole?.takeContent(),
    /** Completes the scan. `content` is the body, if it was scanned and may have to be sent back. */
    async finish(): Promise<{ decision: Decision; content?: Content | undefined }> {
      if (decision !== undefined) return { decision }
      const formDecision = await form?.finish()
      const formVerdict = formDecision?.verdict.is
      if (formVerdict === 'threat' || formVerdict === 'failed') return { decision: formDecision as Decision }
      const finished = await finishWhole()
      return finished.decision.verdict.is === 'clean' && formDecision !== undefined
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
        ? { decision: cleanDecision }
        : { decision: toDecision(scanned.scan), content: scanned.content }
    } catch (error) {
      return { decision: toErrorDecision(error, deps) }
    }
  }
}

const toDecision = (scan: Scan): Decision => ({ verdict: toVerdict(scan), reference: scan.id })

function toErrorDecision(error: unknown, deps: MessageScanDeps): Decision {
  const verdict = toErrorVerdict(error)
  return verdict.is === 'not-scanned' ? toNotScanned(verdict.names.join(), deps) : { verdict, reference: '' }
}

/** The decision for content that is not even given to the engines. */
function toNotScanned(reason: string, { reportUnscanned }: MessageScanDeps): Decision {
  const reference = randomUUID()
  reportUnscanned({ reference, reason })
  return { verdict: { is: 'not-scanned', names: [reason] }, reference }
}

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
      const isMalformed = error instanceof Problem && error.refusal.kind === 'malformed-request'
      worstDecision = isMalformed ? toNotScanned('MalformedForm', deps) : toErrorDecision(error, deps)
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
    const { is } = decision.verdict
    if (is === 'threat') isDecided = true
    if (is === 'threat' || (is === 'not-scanned' && worstDecision === undefined)) worstDecision = decision
  }
}
