import { execFile } from 'node:child_process'
import { runShared } from './shared-commands.ts'

/** Path of the operator's program. */
export const programFile = new URL('../../packages/server/src/main.ts', import.meta.url).pathname

export type Run = { code: number; out: string; err: string }

/**
 * Runs a command of the operator's program and returns its exit code and output. Commands of a test file share a
 * process, because most of the processor time of a command is that of its start. A command that comes while another one
 * runs gets a process of its own, as does one that serves or that needs more than settings of Assay.
 */
export async function runProgram(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  const isPlain = args[0] !== 'serve' && Object.keys(settings).every((name) => name.startsWith('ASSAY_'))
  const shared = isPlain ? runShared(programFile, { args, env: { ...process.env, ...settings } }) : undefined
  return shared ?? runAlone(settings, ...args)
}

/** Runs a command in a process of its own, as an operator does. */
export function runAlone(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  // The ledger of a long soak has tens of megabytes.
  const options = { env: { ...process.env, ...settings }, maxBuffer: 2 ** 28 }
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile, ...args], options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}
