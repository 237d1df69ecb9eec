import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import { findModulesDir } from '../worker/modules-dir.ts'
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts'
import type { Answer, BackendName, Request } from './wire.ts'

export type YaraProcess = WorkerProcess<Request, Answer> & {
  /** It said so with its last answer. */
  isWorn(): boolean
}

export type ProcessOptions = { backend: BackendName | undefined; runAs: Unprivileged | undefined }

/**
 * Rules are code of others and content is hostile, so both meet in a process that holds no secret, may write nothing and
 * may be killed at any time.
 */
export function startYaraProcess({ backend, runAs }: ProcessOptions): YaraProcess {
  const args = [...nodeFlags(), entry, ...(backend === undefined ? [] : [backend])]
  const launch = runAs?.wrap(process.execPath, args) ?? { command: process.execPath, args }
  const worker = startWorkerProcess<Request, Answer>('YARA process', launch)
  let isWorn = false
  return {
    ...worker,
    async ask(...question) {
      isWorn = false
      const answer = await worker.ask(...question)
      isWorn = 'worn' in answer && answer.worn
      return answer
    },
    isWorn: () => isWorn,
  }
}

const entry = fileURLToPath(new URL('child/main.ts', import.meta.url))
const workerDir = fileURLToPath(new URL('../worker', import.meta.url))

function nodeFlags(): string[] {
  const modules = ['koffi', '@virustotal/yara-x'].map((name) => findModulesDir(import.meta.resolve(name)))
  const readable = [...new Set([dirname(dirname(entry)), workerDir, ...modules])].map((path) => `${path}/*`)
  return [
    '--permission',
    '--allow-addons',
    ...[...readable, '/var/lib/dpkg/status'].map((path) => `--allow-fs-read=${path}`),
    '--disable-warning=SecurityWarning',
    // Content lies outside the heap; what a scan with YARA-X returns lies within.
    '--max-old-space-size=512',
  ]
}
