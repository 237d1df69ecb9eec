import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runShared } from '../../../acceptance/support/shared-commands.ts'
import { openFakeServer } from '../../client/test/fake-server.ts'

export const mainFile = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Compiling the sources for every run would take most of the time. */
const cacheDir = fileURLToPath(new URL('../../../node_modules/.cache/assay-cli', import.meta.url))

export type CliResult = { code: number | null; out: string; err: string }

type RunOptions = {
  env?: NodeJS.ProcessEnv
  cwd?: string
  input?: string | Buffer
  /** Keeps standard input open without sending anything. */
  isInputOpen?: boolean
  uid?: number
  /** File descriptor for standard output, instead of a pipe to the test. */
  stdout?: number
}

/** A temporary directory, which is also the home directory of the commands that run in it. */
export function openDir(t: { after(work: () => void): void }): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-cli-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** The environment of this process without its own settings of Assay and of the terminal. */
export function newEnv(home: string, given: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(ASSAY_|XDG_|NO_COLOR|NODE_TEST|FORCE_COLOR)/.test(name),
  )
  return { ...Object.fromEntries(kept), HOME: home, TERM: 'xterm', NODE_COMPILE_CACHE: cacheDir, ...given }
}

/** A fake server, and a directory in which assay-scan is configured to use that server. */
export async function openFakeCli(t: TestContext, react: Parameters<typeof openFakeServer>[1], cwd = openDir(t)) {
  const fake = await openFakeServer(t, react)
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const start = (args: string[], options: RunOptions = {}) => startCli(args, { cwd, env, ...options })
  const run = (...args: string[]) => runCli(args, { cwd, env })
  return { cwd, env, fake, start, run }
}

export function startCli(args: string[], { input, isInputOpen = false, stdout, ...options }: RunOptions = {}) {
  const stdin = input !== undefined || isInputOpen ? ('pipe' as const) : ('ignore' as const)
  const child = spawn(process.execPath, [mainFile, ...args], { ...options, stdio: [stdin, stdout ?? 'pipe', 'pipe'] })
  // The command may end before it has read all of its input.
  child.stdin?.on('error', () => {})
  if (input !== undefined) child.stdin?.end(input)
  return collect(child)
}

/**
 * Runs a command to its end. Commands of a test file share a process, because most of the processor time of a command is
 * that of its start. A command with input, output or a user of its own gets a process, as does one that comes while
 * another one runs.
 */
export function runCli(args: string[], options: RunOptions = {}): Promise<CliResult> {
  const { env = process.env, cwd, ...own } = options
  const isPlain = cwd !== undefined && Object.keys(own).length === 0
  return (isPlain ? runShared(mainFile, { args, env, cwd }) : undefined) ?? startCli(args, options).ended
}

/** Runs a shell command in a pseudo-terminal, whose output contains standard error as well. */
export function startInTerminal(command: string, env: NodeJS.ProcessEnv, cwd?: string) {
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env, cwd, stdio: ['pipe', 'pipe', 'pipe'] })
  return collect(child)
}

/** The command line of assay-scan for a shell. */
export const toCommand = (...args: string[]) => [process.execPath, mainFile, ...args].map((arg) => `'${arg}'`).join(' ')

function collect(child: ChildProcess) {
  let [out, err] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  const ended = new Promise<CliResult>((resolve) => child.once('close', (code) => resolve({ code, out, err })))
  return { child, ended, out: () => out, err: () => err }
}
