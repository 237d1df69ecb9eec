import type { Content } from '../../domain/content/content.ts'
import type { Doubt, SeenMembers, UnpackBudget, Unpacker, Work } from '../../domain/ports/engines.ts'
import { frameKinds } from '../child-process/frames.ts'
import type { Child } from '../child-process/start-child.ts'

/** The request to an unpacking process. */
export type Job = {
  contentBytes: number
  seen: SeenMembers
}

/** The answer of an unpacking process. */
export type JobAnswer = {
  doubts: Doubt[]
  /** Some reader understood a part of the content. */
  isOpened: boolean
  /** The process holds so much memory that it should be replaced. */
  needsReplacement: boolean
}

type Take = Parameters<Unpacker['unpack']>[1]['take']

export type UnpackResult =
  | { kind: 'answered'; answer: JobAnswer }
  /** The budget is used up. The process is killed. */
  | { kind: 'limit' }
  /** The process died without an answer, or hung and was killed. */
  | { kind: 'died'; sawContent: boolean; hasEscaped: boolean }

const maxReadBytes = 2 ** 20
/** The file name that 7-Zip sees, and after which it names the one member of a compressed file. */
export const contentName = 'content'

/**
 * Unpacks one container in one process. The job reads one frame after the other: while `take` does not read, 7-Zip
 * waits. A member beyond the budget ends early and the result says so, so that findings in its first part still count.
 * Reading a member fails when the process dies: a part of it must leave no doubt, because the job may be repeated.
 * Throws the errors of `take` and of reading the content, and the signal's reason; the process is killed then.
 */
export async function runJob(
  child: Child,
  content: Content,
  options: { take: Take; budget: UnpackBudget; work: Work; seen?: SeenMembers },
): Promise<UnpackResult> {
  const { take, budget } = options
  const { signal } = options.work
  signal.addEventListener('abort', child.kill, { once: true })
  const frames = makeJobFrames(child, content)
  const death = new Error('The unpacking process died')

  async function* readMember(): AsyncGenerator<Buffer> {
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      if (frame.kind === frameKinds.end) return
      if (frame.kind !== frameKinds.data) break
      budget.bytes -= frame.payload.length
      if (budget.bytes < 0) return frames.stop('limit')
      yield frame.payload
    }
    frames.stop('died')
    if (frames.getOutcome().stopped === 'died') throw death
  }

  async function toDied(): Promise<UnpackResult> {
    const { sawContent } = frames.getOutcome()
    await child.ended
    return { kind: 'died', sawContent, hasEscaped: child.hasEscaped() }
  }

  try {
    signal.throwIfAborted()
    const job: Job = { contentBytes: content.bytes, seen: options.seen ?? 'give' }
    await child.post(job)
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      if (frame.kind === frameKinds.answer) return { kind: 'answered', answer: frame.answer as JobAnswer }
      if (frame.kind !== frameKinds.open || budget.members < 1) {
        frames.stop(frame.kind === frameKinds.open ? 'limit' : 'died')
        break
      }
      budget.members--
      const bytes = readMember()
      await take({ path: toMemberPath(frame.payload), bytes: withoutReturn(bytes) })
      for await (const _ of bytes);
    }
    signal.throwIfAborted()
    return frames.getOutcome().stopped === 'limit' ? { kind: 'limit' } : await toDied()
  } catch (error) {
    child.kill()
    signal.throwIfAborted()
    if (error === death) return await toDied()
    throw error
  } finally {
    signal.removeEventListener('abort', child.kill)
  }
}

/** The frames of one job. Requests for bytes of the container are answered here. */
function makeJobFrames(child: Child, content: Content) {
  let sawContent = false
  let stopped: 'limit' | 'died' | undefined
  let failure: { error: unknown } | undefined

  function stop(reason: 'limit' | 'died') {
    stopped ??= reason
    child.kill()
  }

  async function answer(range: Buffer) {
    try {
      sawContent = true
      await child.sendData(await readRange(content, range))
    } catch (error) {
      failure ??= { error }
      stop('died')
    }
  }

  return {
    /** Undefined when the job is stopped or the process is dead. */
    async next() {
      while (stopped === undefined) {
        const frame = await child.readFrame()
        if (frame === undefined) stop('died')
        else if (frame.kind === frameKinds.read) await answer(frame.payload)
        else return frame
      }
      return undefined
    },
    stop,
    /** Throws when the content could not be read. */
    getOutcome() {
      if (failure !== undefined) throw failure.error
      return { stopped, sawContent }
    },
  }
}

/** Keeps a reader that stops early from ending the member: its remaining bytes are still in the socket. */
function withoutReturn(bytes: AsyncGenerator<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => ({ next: () => bytes.next() }) }
}

async function readRange(content: Content, range: Buffer): Promise<Buffer> {
  const start = Number(range.readBigUInt64LE(0))
  const length = range.readUInt32LE(8)
  if (length > maxReadBytes || start + length > content.bytes)
    throw new Error('The unpacking process asked for too much')
  if (content.whole !== undefined) return content.whole.subarray(start, start + length)
  const pieces: Buffer[] = []
  for await (const piece of content.read(start, start + length)) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  if (bytes.length !== length) throw new Error(`The content has ${bytes.length} bytes where ${length} should be`)
  return bytes
}

const maxPathCharacters = 512

/**
 * A member's name for display: valid text without control characters, and without characters that reverse the direction
 * of writing, which make `txt.exe` look like `exe.txt`. The name is never opened.
 */
function toMemberPath(name: Buffer): string {
  const text = name.toString('utf8').replaceAll(invisible, '\ufffd')
  // 7-Zip's name for the one member of a compressed file, which has no name of its own.
  if (text === `${contentName}~`) return ''
  const points = [...text]
  return points.length <= maxPathCharacters ? text : `${points.slice(0, maxPathCharacters - 1).join('')}…`
}

const invisible = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g
