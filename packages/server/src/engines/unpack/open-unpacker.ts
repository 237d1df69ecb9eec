import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findContainer, findContainerFormat } from '../../domain/content/container.ts'
import type { Content } from '../../domain/content/content.ts'
import type { UnpackBudget, Unpacker } from '../../domain/ports/engines.ts'
import { type Doubt, EngineBusy, EngineDown } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { engineOptions } from '../child-process/engine-options.ts'
import { type Launch, parserUsers, toNodeFlags } from '../child-process/node-launch.ts'
import { openProcessPool } from '../child-process/process-pool.ts'
import { startChild } from '../child-process/start-child.ts'
import { type JobAnswer, runJob, type UnpackResult } from './unpack-job.ts'

type Options = Parameters<Unpacker['unpack']>[1]

type RunningUnpacker = Unpacker & { close(): Promise<void>; processIds(): number[] }

/** 7-Zip in processes of their own, for the containers that ClamAV calls OK without opening them. */
export function openUnpacker(deps: { log: Logger } & Partial<typeof engineOptions.unpacker>): RunningUnpacker {
  const { log, ...options } = { ...engineOptions.unpacker, ...deps }
  const launch = chooseLaunch()
  const pool = openProcessPool({ ...options, log, start: async () => startChild(options.name, launch) })

  /** All depths of a scan share one budget, so a budget that is in use here belongs to nested work. */
  const budgetsInUse = new Set<UnpackBudget>()

  async function tryOnce(content: Content, job: Options): Promise<UnpackResult> {
    const { signal, budget } = job
    const isNested = budgetsInUse.has(budget)
    let hasBegun = false
    signal.throwIfAborted()
    try {
      return await pool.use(
        (child) => {
          hasBegun = true
          budgetsInUse.add(budget)
          return runJob(child, content, { ...job, workMs: options.workMs })
        },
        signal,
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
      let result = await tryOnce(content, job)
      // The process may have been killed while idle, or by a machine without memory. Members are given only once.
      if (result.kind === 'died' && !result.gaveMembers) result = await tryOnce(content, job)
      switch (result.kind) {
        case 'limit':
          job.budget.members = 0
          job.budget.bytes = 0
          return ['ScanLimitExceeded']
        case 'died':
          pool.throwIfClosed()
          if (!result.sawContent) throw new EngineDown('The unpacking process cannot be started')
          log.warn({ sha256: content.sha256, bytes: content.bytes }, 'an unpacking process died at work')
          return ['UnsupportedContainer']
        case 'answered':
          return await refineDoubts(content, listDoubts(result.answer, findContainerFormat(content.head)?.unpackAs))
      }
    },
    processIds: pool.listPids,
    close: pool.close,
  }
}

const program = realpathSync(fileURLToPath(import.meta.resolve('./child/main.ts')))
const sourceDir = dirname(dirname(program))
const library = realpathSync(dirname(fileURLToPath(import.meta.resolve('7z-wasm'))))

/** Outside of the heap lie 16 MB of the container and the memory of WebAssembly, which has a limit of its own. */
const maxHeapMb = 128

/** The processes may read their own source and 7-Zip, and nothing else; they run as an ordinary user. */
function chooseLaunch(): Launch {
  const node = realpathSync(process.execPath)
  const user = chooseUnprivileged('unpacker', parserUsers, [dirname(node), sourceDir, library])
  const flags = toNodeFlags({ readableDirs: [sourceDir, library], maxHeapMb, allowsAddons: false })
  return wrapGuarded(user, node, [...flags, '--expose-gc', '--disable-warning=ExperimentalWarning', program])
}

/** 7-Zip does not report an encrypted list of members as encrypted; the container's own headers do. */
async function refineDoubts(content: Content, doubts: Doubt[]): Promise<Doubt[]> {
  if (!doubts.includes('UnsupportedContainer') || doubts.includes('EncryptedContent')) return doubts
  const containerDoubts = (await findContainer(content))?.doubts ?? []
  if (!containerDoubts.includes('EncryptedContent')) return doubts
  return [...doubts.filter((doubt) => doubt !== 'UnsupportedContainer'), 'EncryptedContent']
}

const fatalErrorCode = 2
const outOfMemoryCode = 8

/** The reasons why 7-Zip's result does not mean that every member was given whole. */
function listDoubts(answer: JobAnswer, type: string | undefined): Doubt[] {
  const { code, complaints, ignored, rewritten } = answer
  const doubts = new Set<Doubt>()
  if (complaints.some((line) => encryption.test(line))) doubts.add('EncryptedContent')
  if (code === outOfMemoryCode || complaints.some((line) => memory.test(line))) doubts.add('ScanLimitExceeded')
  const isExplained = doubts.size > 0 || (code === fatalErrorCode && complaints.length === 0 && ignored > 0)
  // A container may hold an encrypted member and a broken one: both are reported.
  const hasOther = complaints.some((line) => !encryption.test(line) && !memory.test(line) && !heading.test(line))
  if (rewritten || hasOther || mayHideInTail(answer, type) || (code !== 0 && !isExplained))
    doubts.add('UnsupportedContainer')
  return [...doubts]
}

const encryption = /encrypted|wrong password/i
const memory = /allocate|enough memory/i
/** Begins a list of complaints, or names the container. */
const heading = /^(?:ERRORS?|WARNINGS?):\s*(?:\/content)?$/

/** Formats without a directory. 7-Zip takes a broken member for the end of the container, and reports success. */
const sequentialFormats = new Set(['rar', 'rar5', 'tar', 'cpio', 'ar', 'arj', 'lzh'])

/** A program with a container behind it may be followed by a signature of this size. */
const maxSignatureBytes = 65_536

/** Formats with a directory name their members there; bytes behind them are padding or the footer of a disk image. */
function mayHideInTail({ members, tailBytes }: JobAnswer, type: string | undefined): boolean {
  if (tailBytes === 0) return false
  if (type === undefined) return members === 0 || tailBytes > maxSignatureBytes
  return members === 0 || sequentialFormats.has(type)
}
