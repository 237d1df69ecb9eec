import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type EngineReport } from '../../domain/ports/engines.ts'
import { toBody } from '../worker/content-body.ts'
import { AnswerLate, ProcessDied } from '../worker/worker-process.ts'
import type { ProcessPool } from './process-pool.ts'
import type { YaraProcess } from './yara-process.ts'

const attempts = 2
/** 5 MB/s, where libyara does 100: for machines that have much else to do. */
const msPerByte = 1 / 5000
/** libyara stops by itself, to the second; only then is the process killed, which costs compiling the rules again. */
const graceMs = 1500

/** A process that died is not the content's fault, once. One that is too slow is given no second chance. */
export async function scanWith(
  findPool: () => ProcessPool | undefined,
  content: Content,
  { scanMs, signal }: { scanMs: number; signal: AbortSignal },
): Promise<EngineReport> {
  const timeoutMs = Math.ceil(scanMs + content.bytes * msPerByte)
  let death: unknown
  for (let attempt = 0; attempt < attempts; attempt++) {
    // Found anew: rules may have changed meanwhile, and without rules there is nothing to find.
    const pool = findPool()
    if (pool === undefined) return { findings: [], doubts: [], unopened: false }
    try {
      return await unlessAborted(
        pool.use((process) => ask(process, content, { timeoutMs, signal }), signal),
        signal,
      )
    } catch (error) {
      if (error instanceof AnswerLate) return { findings: [], doubts: ['ScanLimitExceeded'], unopened: false }
      if (!(error instanceof ProcessDied)) throw error
      death = error
    }
  }
  throw new EngineDown(`YARA died ${attempts} times on the same content`, { cause: death })
}

async function ask(
  process: YaraProcess,
  content: Content,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<EngineReport> {
  const answer = await process.ask({ ask: 'scan', bytes: content.bytes, timeoutMs }, toBody(content), {
    sendMs: timeoutMs,
    answerMs: timeoutMs + graceMs,
    signal,
  })
  if ('failure' in answer) throw new EngineDown(answer.failure)
  if (!('findings' in answer)) throw new EngineDown('The YARA process gave no result')
  if (answer.bytes !== content.bytes) throw new EngineDown(`YARA scanned ${answer.bytes} bytes of ${content.bytes}`)
  return { findings: answer.findings, doubts: answer.limited ? ['ScanLimitExceeded'] : [], unopened: false }
}

/**
 * The caller goes at once; the process finishes what it scans, or is late. Killing it instead would let callers who hang
 * up make every scan wait for the rules to be compiled again.
 */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
