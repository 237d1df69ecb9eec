import { basename, resolve } from 'node:path'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import { startWithRules } from './compile-rules.ts'
import { readRuleFiles } from './rule-files.ts'
import type { BackendName } from './wire.ts'

const compileMs = 60_000

/** Why the engine would refuse this file, if it would. Throws `EngineDown` when there is no engine to ask. */
export async function checkYaraFile(
  path: string,
  options: { backend?: BackendName; runAs?: Unprivileged; signal?: AbortSignal } = {},
): Promise<string | undefined> {
  const { files, refused } = await readRuleFiles([{ path: resolve(path), mark: '', changedAt: new Date(0) }])
  if (refused[0] !== undefined) return refused[0].reason
  if (files.length === 0) return `${basename(path)} does not exist`
  const { backend, runAs, signal = new AbortController().signal } = options
  const { process, compiled } = await startWithRules(files, { backend, runAs, compileMs, signal })
  process.end()
  await process.ended
  if (compiled.refused[0] !== undefined) return compiled.refused[0].reason
  return compiled.rules === 0 ? 'there is no rule in it' : undefined
}
