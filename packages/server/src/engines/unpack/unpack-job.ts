import { findContainerFormat } from '../../domain/content/container.ts'
import type { Content } from '../../domain/content/content.ts'
import type { UnpackBudget, Unpacker } from '../../domain/ports/engines.ts'
import type { UnpackProcess } from './child-process.ts'
import { frameKinds, type JobEnd } from './frames.ts'
import { toMemberPath } from './member-path.ts'

type Take = Parameters<Unpacker['unpack']>[1]['take']

export type UnpackResult =
  | { kind: 'end'; end: JobEnd }
  /** More came out than may, or it took longer than may. The process is gone. */
  | { kind: 'limit' }
  /** The process ended without a word. */
  | { kind: 'died'; sawContent: boolean; gaveMembers: boolean }

const maxReadBytes = 2 ** 20
const containerName = 'content'

/**
 * One container through one process. The process is driven by asking for its next frame: while `take` does not read,
 * 7-Zip stands still. A member that cannot be given whole ends early for `take`; the outcome tells of it, so that what
 * was found in the first part still counts. Throws what `take` throws, what reading the content throws, and the
 * signal's reason; the process is dead then.
 */
export async function runJob(
  unpacking: UnpackProcess,
  content: Content,
  options: { take: Take; budget: UnpackBudget; signal: AbortSignal; workMs: number },
): Promise<UnpackResult> {
  const { take, budget, signal } = options
  const kill = () => unpacking.kill()
  signal.addEventListener('abort', kill, { once: true })
  const waiting = makeStopwatch(options.workMs, kill)
  let sawContent = false
  let gaveMembers = false
  let stopped: 'limit' | 'died' | undefined
  let failure: { error: unknown } | undefined

  /** The next frame that is not a question for bytes; undefined when there will be none. */
  async function next() {
    while (stopped === undefined) {
      const frame = await waiting.during(unpacking.nextFrame())
      if (frame === undefined) {
        stopped = waiting.isOver() ? 'limit' : 'died'
      } else if (frame.kind === frameKinds.read) {
        await answer(frame.payload)
      } else {
        return frame
      }
    }
    return undefined
  }

  async function answer(range: Buffer) {
    try {
      sawContent = true
      await unpacking.answer(await readRange(content, range))
    } catch (error) {
      failure ??= { error }
      stop('died')
    }
  }

  function stop(why: 'limit' | 'died') {
    stopped ??= why
    kill()
  }

  async function* readMember(): AsyncGenerator<Buffer> {
    for (let frame = await next(); frame !== undefined; frame = await next()) {
      if (frame.kind === frameKinds.close) return
      if (frame.kind !== frameKinds.data) return stop('died')
      budget.bytes -= frame.payload.length
      if (budget.bytes < 0) return stop('limit')
      yield frame.payload
    }
  }

  try {
    signal.throwIfAborted()
    await unpacking.startJob(newJob(content))
    for (let frame = await next(); frame !== undefined; frame = await next()) {
      if (frame.kind === frameKinds.end) return { kind: 'end', end: JSON.parse(frame.payload.toString()) }
      if (frame.kind !== frameKinds.open || budget.members < 1) {
        stop(frame.kind === frameKinds.open ? 'limit' : 'died')
        break
      }
      budget.members--
      gaveMembers = true
      const bytes = readMember()
      await take({ path: toMemberPath(frame.payload, containerName), bytes: withoutReturn(bytes) })
      for await (const _ of bytes);
    }
    if (failure !== undefined) throw failure.error
    signal.throwIfAborted()
    return stopped === 'limit' ? { kind: 'limit' } : { kind: 'died', sawContent, gaveMembers }
  } catch (error) {
    kill()
    signal.throwIfAborted()
    throw error
  } finally {
    waiting.stop()
    signal.removeEventListener('abort', kill)
  }
}

/** A reader that stops early must not end the member: what it left is still read off the pipe. */
function withoutReturn(bytes: AsyncGenerator<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => ({ next: () => bytes.next() }) }
}

function newJob({ head, bytes }: Content) {
  return { bytes, type: findContainerFormat(head)?.unpackAs, name: containerName }
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

/** Counts only the time that the process works; what the caller does with a member is the caller's time. */
function makeStopwatch(ms: number, over: () => void) {
  let leftMs = ms
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  return {
    isOver: () => isOver,
    stop: () => clearTimeout(timer),
    async during<T>(work: Promise<T>): Promise<T> {
      const startedAt = performance.now()
      timer = setTimeout(
        () => {
          isOver = true
          over()
        },
        Math.max(0, leftMs),
      )
      try {
        return await work
      } finally {
        clearTimeout(timer)
        leftMs -= performance.now() - startedAt
      }
    },
  }
}
