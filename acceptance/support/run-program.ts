import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runShared } from './shared-commands.ts'

/** Path of the operator's program, as users start it. */
export const programFile = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))

/**
 * Path of the program for a command. `npm test` has joined its modules (scripts/bundle-program.ts): loading them one by
 * one is most of the processor time of a command, and half that of a start of the service.
 */
export function findProgramFile(command: string): string {
  const bundles = process.env.ASSAY_TEST_BUNDLES
  return bundles === undefined ? programFile : join(bundles, command === 'serve' ? 'serve' : 'commands', 'main.js')
}

export type Run = { code: number; out: string; err: string }

/**
 * Runs a command of the operator's program and returns its exit code and output. Commands of a test file share a
 * process, because most of the processor time of a command is that of its start. A command that comes while another one
 * runs gets a process of its own, as does one that serves or that needs more than settings of Assay.
 */
export async function runProgram(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  const [command = ''] = args
  const isPlain = command !== 'serve' && Object.keys(settings).every((name) => name.startsWith('ASSAY_'))
  const message = { args, env: { ...process.env, ...settings } }
  return (isPlain ? runShared(findProgramFile(command), message) : undefined) ?? runAlone(settings, ...args)
}

/** Runs a command in a process of its own, as an operator does. */
export function runAlone(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  // The ledger of a long soak has tens of megabytes.
  const options = { env: { ...process.env, ...settings }, maxBuffer: 2 ** 28 }
  return new Promise((resolve) => {
    execFile(process.execPath, [findProgramFile(args[0] ?? ''), ...args], options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}
