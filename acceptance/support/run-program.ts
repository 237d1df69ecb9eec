import { execFile } from 'node:child_process'

/** The operator's program. */
export const programFile = new URL('../../packages/server/src/main.ts', import.meta.url).pathname

export type Run = { code: number; out: string; err: string }

/** The program as typed, with what it printed and how it ended, also when that was a failure. */
export function runProgram(settings: NodeJS.ProcessEnv, ...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile, ...args], { env: { ...process.env, ...settings } }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}
