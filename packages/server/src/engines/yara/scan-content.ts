import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type EngineReport, type Work } from '../../domain/ports/engines.ts'
import type { ProcessPool } from '../child-process/process-pool.ts'
import { toBody } from '../child-process/send-body.ts'
import { type Child, LimitExceeded, ProcessDied } from '../child-process/start-child.ts'
import type { Answer } from './requests.ts'

const attempts = 2
/** 5 MB/s, where libyara scans 100 MB/s. */
const msPerByte = 1 / 5000
/** How much longer than its processor time a scan may take on a busy machine. */
const maxSlowdown = 8

/**
 * Scans once more when the process died or hung, because the content may not be the cause. A scan that took too much
 * processor time is not repeated.
 */
export async function scanContent(
  findPool: () => ProcessPool | undefined,
  content: Content,
  { scanMs, work }: { scanMs: number; work: Work },
): Promise<EngineReport> {
  const { signal } = work
  const maxProcessorMs = Math.ceil(scanMs + content.bytes * msPerByte)
  let death: unknown
  for (let attempt = 0; attempt < attempts; attempt++) {
    // The pool is looked up for each attempt, because the rules may have changed. Without rules there is nothing to
    // find.
    const pool = findPool()
    if (pool === undefined) return { findings: [], doubts: [], suspectsContainer: false }
    try {
      const report = pool.use((child) => requestScan(child, content, { maxProcessorMs, signal }), work)
      return await rejectOnAbort(report, signal)
    } catch (error) {
      if (error instanceof LimitExceeded)
        return { findings: [], doubts: ['ScanLimitExceeded'], suspectsContainer: false }
      if (!(error instanceof ProcessDied)) throw error
      death = error
    }
  }
  throw new EngineDown(`The YARA process died ${attempts} times on the same content`, { cause: death })
}

async function requestScan(
  child: Child,
  content: Content,
  { maxProcessorMs, signal }: { maxProcessorMs: number; signal: AbortSignal },
): Promise<EngineReport> {
  const elapsedMs = maxProcessorMs * maxSlowdown
  const limits = { sendMs: elapsedMs, answerMs: elapsedMs, maxProcessorMs, signal, ownsChunks: !content.isInMemory }
  const answer = await child.sendRequest<Answer>({ kind: 'scan', bytes: content.bytes }, toBody(content), limits)
  if ('failure' in answer) throw new EngineDown(answer.failure)
  if (!('findings' in answer)) throw new EngineDown('The YARA process gave no result')
  if (answer.bytes !== content.bytes) throw new EngineDown(`YARA scanned ${answer.bytes} bytes of ${content.bytes}`)
  return { findings: answer.findings, doubts: answer.limited ? ['ScanLimitExceeded'] : [], suspectsContainer: false }
}

/**
 * Lets the caller go at once while the process finishes its scan. Killing the process instead would let callers who
 * disconnect make every scan wait until the rules are compiled again.
 */
function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
