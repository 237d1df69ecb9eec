import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findKnownDoubts } from '../../domain/content/container.ts'
import { findContainerFormat } from '../../domain/content/container-formats.ts'
import type { Content } from '../../domain/content/content.ts'
import { type Doubt, EngineBusy, EngineDown, type UnpackBudget, type Unpacker } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { engineOptions } from '../child-process/engine-options.ts'
import { toNodeLaunch } from '../child-process/node-launch.ts'
import { openProcessPool } from '../child-process/process-pool.ts'
import { startChild } from '../child-process/start-child.ts'
import { type OnEscape, policies } from '../jail/policy.ts'
import { type JobAnswer, runJob, type UnpackResult } from './unpack-job.ts'

type Options = Parameters<Unpacker['unpack']>[1]

type UnpackerDeps = Partial<typeof engineOptions.unpacker> & { log: Logger; onEscape?: OnEscape | undefined }

type RunningUnpacker = Unpacker & { close(): Promise<void>; processIds(): number[] }

/** The readers of Assay and 7-Zip in processes of their own, for content that may hold other content. */
export function openUnpacker(deps: UnpackerDeps): RunningUnpacker {
  const { log, onEscape, ...options } = { ...engineOptions.unpacker, ...deps }
  const launch = toUnpackerLaunch(childProgram)
  const pool = openProcessPool({
    ...options,
    log,
    start: async () =>
      startChild(options.name, launch, { onEscape: () => onEscape?.('unpacker'), stallMs: options.stallMs }),
  })

  /** All depths of a scan share one budget, so a budget that is in use here belongs to nested work. */
  const budgetsInUse = new Set<UnpackBudget>()

  async function tryOnce(content: Content, job: Options): Promise<UnpackResult> {
    const { work, budget } = job
    const { signal } = work
    const isNested = budgetsInUse.has(budget)
    let hasBegun = false
    signal.throwIfAborted()
    try {
      return await pool.use(
        (child) => {
          hasBegun = true
          budgetsInUse.add(budget)
          return runJob(child, content, job)
        },
        work,
        { isNested },
      )
    } catch (error) {
      // The caller gave up before the work began, so the container exceeded no limit.
      if (error === signal.reason && !hasBegun) throw new EngineBusy('No unpacking process was free in time')
      throw error
    } finally {
      if (!isNested) budgetsInUse.delete(budget)
    }
  }

  return {
    async unpack(content, job) {
      const { members, bytes } = job.budget
      let result = await tryOnce(content, job)
      if (result.kind === 'died') {
        pool.throwIfClosed()
        log.warn({ sha256: content.sha256, bytes: content.bytes }, 'an unpacking process died at work')
        // The next process gives all members again; the caller knows those that it has inspected. A budget of 0 is one
        // that the caller has ended.
        if (job.budget.members > 0) Object.assign(job.budget, { members, bytes })
        result = await tryOnce(content, job)
      }
      switch (result.kind) {
        case 'limit':
          job.budget.members = 0
          job.budget.bytes = 0
          return ['ScanLimitExceeded']
        case 'died':
          pool.throwIfClosed()
          if (!result.sawContent) throw new EngineDown('The unpacking process cannot be started')
          if (result.hasEscaped) throw new EngineDown('The unpacking process made a forbidden system call')
          throw new EngineDown('The unpacking process died twice on the same content')
        case 'answered':
          return await refineDoubts(content, listDoubts(content, result.answer))
      }
    },
    processIds: pool.listPids,
    close: pool.close,
  }
}

const childProgram = realpathSync(fileURLToPath(new URL('child/main.ts', import.meta.url)))
const sourceDir = dirname(dirname(childProgram))
/** The readers share the recognition of formats with the service. */
const domainDir = join(sourceDir, '..', '..', 'domain')
const library = realpathSync(dirname(fileURLToPath(import.meta.resolve('7z-wasm'))))

/** Outside of the heap lie 16 MB of the container and the memory of WebAssembly, which has a limit of its own. */
const maxHeapMb = 128

/** The command that runs a program as an unpacking process. */
export const toUnpackerLaunch = (program: string) =>
  toNodeLaunch({
    name: 'unpacker',
    program,
    toPolicy: policies.unpacker,
    readableDirs: [sourceDir, domainDir, library],
    maxHeapMb,
    allowsAddons: false,
    flags: ['--disable-warning=ExperimentalWarning'],
  })

/** Content that its head calls a container, and of which no reader understood anything, was not opened. */
function listDoubts({ head }: Content, { doubts, isOpened }: JobAnswer): Doubt[] {
  const isUnopened = !isOpened && findContainerFormat(head) !== undefined && doubts.length === 0
  return isUnopened ? ['UnsupportedContainer'] : doubts
}

/** 7-Zip does not report an encrypted list of members as encrypted; the container's own headers do. */
async function refineDoubts(content: Content, doubts: Doubt[]): Promise<Doubt[]> {
  if (!doubts.includes('UnsupportedContainer') || doubts.includes('EncryptedContent')) return doubts
  const knownDoubts = (await findKnownDoubts(content)) ?? []
  if (!knownDoubts.includes('EncryptedContent')) return doubts
  return [...doubts.filter((doubt) => doubt !== 'UnsupportedContainer'), 'EncryptedContent']
}
