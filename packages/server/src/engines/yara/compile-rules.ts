import { EngineDown } from '../../domain/ports/engines.ts'
import type { RuleFile } from './rule-files.ts'
import type { Answer, Compiled } from './wire.ts'
import { type ProcessOptions, startYaraProcess, type YaraProcess } from './yara-process.ts'

const sendMs = 30_000
const noBytes = Buffer.alloc(0)

/** A process that has compiled all of the files but those it refused. Throws `EngineDown` when it cannot. */
export async function startWithRules(
  files: RuleFile[],
  options: ProcessOptions & { compileMs: number; signal: AbortSignal },
): Promise<{ process: YaraProcess; compiled: Compiled }> {
  const process = startYaraProcess(options)
  const { compileMs, signal } = options
  const limits = { sendMs, answerMs: compileMs, signal }
  signal.addEventListener('abort', process.kill, { once: true })
  try {
    for (const { file, text } of files) {
      getSound(await process.ask({ ask: 'add', file, bytes: text.length }, text, limits))
    }
    const compiled = getSound(await process.ask({ ask: 'compile' }, noBytes, limits))
    if (!('refused' in compiled)) throw new Error('The YARA process did not say what it compiled')
    return { process, compiled }
  } catch (error) {
    process.kill()
    await process.ended
    throw new EngineDown('YARA could not compile its rules', { cause: error })
  } finally {
    signal.removeEventListener('abort', process.kill)
  }
}

function getSound(answer: Answer): Answer {
  if ('failure' in answer) throw new Error(answer.failure)
  return answer
}
