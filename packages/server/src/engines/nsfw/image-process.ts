import { fileURLToPath } from 'node:url'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type ImageReport } from '../../domain/ports/engines.ts'
import { toBody } from '../worker/content-body.ts'
import { AnswerLate, startWorkerProcess } from '../worker/worker-process.ts'
import type { Confinement } from './confinement.ts'
import type { Cores } from './cores.ts'
import { watchMemory } from './memory-watch.ts'
import type { Answer, Opening, Request } from './wire.ts'

/** It held more memory than it may and was ended. */
class MemoryExceeded extends Error {}

export type ImageProcess = {
  versions: Record<string, string>
  /** One at a time. Throws `ProcessDied` when it ended meanwhile. */
  classify(content: Content): Promise<ImageReport>
  isDead(): boolean
  ended: Promise<void>
  kill(): void
}

export type ProcessDeps = {
  confinement: Confinement
  cores: Cores
  opening: Opening
  startMs: number
  /** For taking the bytes, and again for the work. */
  sendMs: number
  workMs: number
  maxMemoryMb: number
}

const noBytes = Buffer.alloc(0)
const program = fileURLToPath(new URL('child/main.ts', import.meta.url))

/** A process that has its models open. Throws when it ends before that. */
export async function startImageProcess(deps: ProcessDeps, signal: AbortSignal): Promise<ImageProcess> {
  const { confinement, cores, opening, startMs, sendMs, workMs, maxMemoryMb } = deps
  const core = cores.take()
  const worker = startWorkerProcess<Request, Answer>('image process', confinement.wrap(program, core))
  void worker.ended.then(() => cores.release(core))
  signal.addEventListener('abort', worker.kill, { once: true })
  try {
    const answer = await worker.ask({ ask: 'open', ...opening }, noBytes, { sendMs, answerMs: startMs, signal })
    if (!('opened' in answer)) throw new Error('failure' in answer ? answer.failure : 'It did not open its models')
    return { versions: answer.opened.versions, classify, isDead: worker.isDead, ended: worker.ended, kill: worker.kill }
  } catch (error) {
    worker.kill()
    await worker.ended
    throw error
  } finally {
    signal.removeEventListener('abort', worker.kill)
  }

  async function classify(content: Content): Promise<ImageReport> {
    const memory = watchMemory(worker.pid ?? 0, {
      maxMb: maxMemoryMb,
      onExceeded: () => worker.giveUp(new MemoryExceeded(`More than ${maxMemoryMb} MB`)),
    })
    try {
      const request = { ask: 'classify', bytes: content.bytes } as const
      const answer = await worker.ask(request, toBody(content), { sendMs, answerMs: workMs })
      if ('report' in answer) return answer.report
      throw new EngineDown('failure' in answer ? answer.failure : 'The image process gave no result')
    } catch (error) {
      if (error instanceof AnswerLate || error instanceof MemoryExceeded) return { unscanned: 'ScanLimitExceeded' }
      throw error
    } finally {
      memory.stop()
    }
  }
}
