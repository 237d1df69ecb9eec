import { findContainer, findContainerFormat } from '../../domain/content/container.ts'
import type { Content } from '../../domain/content/content.ts'
import { type Doubt, EngineDown, type UnpackBudget, type Unpacker } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { makeProcessStarter } from './child-process.ts'
import { listDoubts } from './job-doubts.ts'
import { openProcessPool } from './process-pool.ts'
import { runJob, type UnpackResult } from './unpack-job.ts'

type Options = Parameters<Unpacker['unpack']>[1]

/** A process that holds more after a job is replaced: 7-Zip's memory is not always given back. */
const maxIdleBytes = 256 * 2 ** 20

/**
 * 7-Zip in processes of their own, for the containers that ClamAV calls OK without looking. `workMs` bounds the time
 * that one container may keep a process working; the time a caller takes for its members is not counted.
 */
export function openUnpacker(deps: {
  log: Logger
  semaphore?: number
  maxWaiting?: number
  idleMs?: number
  workMs?: number
}): Unpacker & { close(): Promise<void>; processIds(): number[] } {
  const { log, semaphore = 2, maxWaiting = 1000, idleMs = 30_000, workMs = 60_000 } = deps
  const pool = openProcessPool({ start: makeProcessStarter({ log }), semaphore, maxWaiting, idleMs })

  /** A scan has one budget for all depths: who comes with one that is at work comes from inside that work. */
  const atWork = new Set<UnpackBudget>()

  async function tryOnce(content: Content, options: Options): Promise<UnpackResult> {
    const isNested = atWork.has(options.budget)
    const lease = await pool.lease(options.signal, { isNested })
    let reuse = false
    try {
      atWork.add(options.budget)
      const outcome = await runJob(lease.process, content, { ...options, workMs })
      reuse = outcome.kind === 'end' && outcome.end.residentBytes < maxIdleBytes
      return outcome
    } finally {
      if (!isNested) atWork.delete(options.budget)
      lease.release({ reuse })
    }
  }

  return {
    async unpack(content, options) {
      let outcome = await tryOnce(content, options)
      // Once is bad luck: killed while it was idle, or by a machine short of memory. Members are given only once.
      if (outcome.kind === 'died' && !outcome.gaveMembers) outcome = await tryOnce(content, options)
      switch (outcome.kind) {
        case 'limit':
          options.budget.members = 0
          options.budget.bytes = 0
          return ['ScanLimitExceeded']
        case 'died':
          pool.throwIfClosed()
          if (!outcome.sawContent) throw new EngineDown('The unpacking process cannot be started')
          log.warn({ sha256: content.sha256, bytes: content.bytes }, 'the unpacking process died of a container')
          return ['UnsupportedContainer']
        case 'end':
          return await explain(content, listDoubts(outcome.end, findContainerFormat(content.head)?.unpackAs))
      }
    },
    processIds: pool.processIds,
    close: pool.close,
  }
}

/** 7-Zip breaks off at an encrypted list of members without saying so; the container's own words tell why. */
async function explain(content: Content, doubts: Doubt[]): Promise<Doubt[]> {
  if (!doubts.includes('UnsupportedContainer') || doubts.includes('EncryptedContent')) return doubts
  const known = (await findContainer(content))?.doubts ?? []
  if (!known.includes('EncryptedContent')) return doubts
  return [...doubts.filter((doubt) => doubt !== 'UnsupportedContainer'), 'EncryptedContent']
}
