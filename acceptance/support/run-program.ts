import { execFile } from 'node:child_process'

/** Path of the operator's program. */
export const programFile = new URL('../../packages/server/src/main.ts', import.meta.url).pathname

export type Run = { code: number; out: string; err: string }

/** Runs the operator's program and returns its exit code and output. */
export function runProgram(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile, ...args], { env: { ...process.env, ...settings } }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}
