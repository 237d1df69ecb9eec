import { execFile } from 'node:child_process'

/** Path of the operator's program. */
export const programFile = new URL('../../packages/server/src/main.ts', import.meta.url).pathname

export type Run = { code: number; out: string; err: string }

/** Runs the operator's program and returns its exit code and output. */
export function runProgram(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  // The ledger of a long soak has tens of megabytes.
  const options = { env: { ...process.env, ...settings }, maxBuffer: 2 ** 28 }
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile, ...args], options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}
