#!/usr/bin/env node
import { AssayError } from '@assay/client'
import { shells } from './command-line/commands.ts'
import { toCompletion } from './command-line/completion.ts'
import { toHelp } from './command-line/help.ts'
import { type Parsed, parse } from './command-line/parse.ts'
import { Cancelled } from './commands/ask.ts'
import { scan } from './commands/scan.ts'
import { exitCodes } from './exit-codes.ts'
import { Mistake } from './mistake.ts'
import { toInert } from './report/inert.ts'
import { print } from './report/print.ts'
import { toSentence } from './scanning/to-failed.ts'
import { versionText } from './version.ts'

/** The only place that ends the process. */
process.exit(await run(process.argv.slice(2)).catch(toExitCode))

async function run(argv: string[]): Promise<number> {
  const parsed = parse(argv)
  if (parsed.has('help')) return await print(toHelp(parsed.command))
  if (parsed.has('version')) return await print(`assay-scan ${versionText}\n`)
  return await runCommand(parsed)
}

async function runCommand(parsed: Parsed): Promise<number> {
  const { env } = process
  const { name } = parsed.command
  if (name === 'scan') return await scan(parsed, env)
  // What is not used is not loaded.
  if (name === 'watch') return await (await import('./commands/watch.ts')).watch(parsed, env)
  if (name === 'result') return await (await import('./commands/result.ts')).result(parsed, env)
  if (name === 'login') return await (await import('./commands/login.ts')).login(parsed, env)
  if (name === 'logout') return await (await import('./commands/logout.ts')).logout(env)
  if (name === 'me') return await (await import('./commands/me.ts')).me(parsed, env)
  const shell = shells.find((each) => each === parsed.args[0])
  if (shell === undefined) throw new Mistake(`Name the shell: assay-scan completion ${shells.join('|')}.`)
  return await print(toCompletion(shell))
}

/** A sentence for what somebody can do something about; the stack only for a fault of ours. */
function toExitCode(error: unknown): number {
  if (error instanceof Cancelled) return error.exitCode
  const isExpected = error instanceof Mistake || error instanceof AssayError
  const text =
    error instanceof AssayError
      ? toSentence(error)
      : error instanceof Error
        ? isExpected
          ? error.message
          : `A fault of assay-scan: ${error.message}`
        : String(error)
  process.stderr.write(`assay-scan: ${toInert(text)}\n`)
  return exitCodes.error
}
