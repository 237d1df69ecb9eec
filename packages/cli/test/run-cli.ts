import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const mainFile = new URL('../src/main.ts', import.meta.url).pathname

/** Compiling the same files for every run would take most of the time. */
const cacheDir = new URL('../../../node_modules/.cache/assay-cli', import.meta.url).pathname

export type Ran = { code: number | null; out: string; err: string }

type RunOptions = {
  env?: NodeJS.ProcessEnv
  cwd?: string
  input?: string | Buffer
  /** It stays open, and nothing comes. */
  isInputOpen?: boolean
  uid?: number
  /** Where standard output goes, instead of being read. */
  stdout?: number
}

/** A directory of its own, which is also the home of those who run in it. */
export function openDir(t: { after(work: () => void): void }): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-cli-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** The program as it is typed, in a terminal or not, with nothing of this run's own settings. */
export function newEnv(home: string, given: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(ASSAY_|XDG_|NO_COLOR|NODE_TEST|FORCE_COLOR)/.test(name),
  )
  return { ...Object.fromEntries(kept), HOME: home, TERM: 'xterm', NODE_COMPILE_CACHE: cacheDir, ...given }
}

export function startCli(args: string[], { input, isInputOpen = false, stdout, ...options }: RunOptions = {}) {
  const stdio = [input !== undefined || isInputOpen ? 'pipe' : 'ignore', stdout ?? 'pipe', 'pipe'] as (
    | 'ignore'
    | 'pipe'
    | number
  )[]
  const child = spawn(process.execPath, [mainFile, ...args], { ...options, stdio })
  // It may have ended before it has read everything.
  child.stdin?.on('error', () => {})
  if (input !== undefined) child.stdin?.end(input)
  return collect(child)
}

export const runCli = (args: string[], options: RunOptions = {}): Promise<Ran> => startCli(args, options).ended

/** In a pseudo-terminal; what is written to standard error comes out there too. */
export function startInTerminal(command: string, env: NodeJS.ProcessEnv, cwd?: string) {
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env, cwd, stdio: ['pipe', 'pipe', 'pipe'] })
  return collect(child)
}

/** For a shell. */
export const toCommand = (...args: string[]) => [process.execPath, mainFile, ...args].map((arg) => `'${arg}'`).join(' ')

function collect(child: ChildProcess) {
  let [out, err] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ code, out, err })))
  return { child, ended, out: () => out, err: () => err }
}
