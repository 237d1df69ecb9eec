import { newMultipartParser } from '../../domain/content/multipart.ts'
import { Problem } from '../../domain/problem.ts'
import { toContentName } from '../../domain/scans/check-submission.ts'
import type { ListenerScan, ListenerScans } from '../listener-scan.ts'
import { type Decision, toDecision, toFailure } from './decision.ts'

const maxParts = 1000

type Step = { does: 'open'; name: string | null } | { does: 'write'; bytes: Buffer } | { does: 'end' }

/**
 * The files of a form that somebody sends through a proxy, each a scan of its own: engines do not look into forms, so a
 * virus in one would be nowhere near the place where it is looked for.
 */
export function newFormScans(scans: ListenerScans, boundary: string, leaveUnscanned: (reason: string) => Decision) {
  const steps: Step[] = []
  const parser = newMultipartParser({
    boundary,
    maxParts,
    openPart({ isFile, filename }) {
      if (!isFile) return { write() {}, end() {} }
      steps.push({ does: 'open', name: toContentName({ fields: {}, partName: filename }) })
      return {
        // A copy: the bytes belong to the form as a whole, which is kept as well.
        write: (bytes) => void steps.push({ does: 'write', bytes: Buffer.from(bytes) }),
        end: () => void steps.push({ does: 'end' }),
      }
    },
  })
  let current: { scan: ListenerScan; name: string | null } | undefined
  let worst: Decision | undefined
  /** Nothing that follows could change it. */
  let isOver = false

  return {
    async write(chunk: Buffer) {
      if (!isOver) await attempt(() => parser.push(chunk))
    },
    /** What speaks against the form, if anything does. */
    async finish(): Promise<Decision | undefined> {
      if (!isOver) await attempt(() => parser.finish())
      return worst
    },
    abort: async () => current?.scan.abort(),
  }

  async function attempt(read: () => void) {
    try {
      read()
      for (const step of steps.splice(0)) await take(step)
    } catch (error) {
      isOver = true
      // What parsers disagree on may be read as another file than was scanned.
      const isBroken = error instanceof Problem && error.refusal.kind === 'malformed-request'
      worst = isBroken ? leaveUnscanned('MalformedForm') : toFailure(error)
    }
  }

  async function take(step: Step) {
    if (step.does === 'open') current = { scan: await scans.begin(), name: step.name }
    else if (step.does === 'write') await current?.scan.write(step.bytes)
    else if (current !== undefined) {
      const { scan, name } = current
      try {
        const scanned = await scan.finish(name)
        if (scanned !== undefined) note(toDecision(scanned.scan))
      } finally {
        current = undefined
        await scan.abort()
      }
    }
  }

  function note(decision: Decision) {
    if (decision.is === 'threat') isOver = true
    if (decision.is === 'threat' || (decision.is === 'unscanned' && worst === undefined)) worst = decision
  }
}
