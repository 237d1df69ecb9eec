#!/usr/bin/env node
import { AssayError } from '@assay/client'
import { shells, versionText } from './command-line/commands.ts'
import { toCompletion } from './command-line/completion.ts'
import { toHelp } from './command-line/help.ts'
import { type Parsed, parse } from './command-line/parse.ts'
import { scan } from './commands/scan.ts'
import { exitCodes } from './exit-codes.ts'
import { print } from './report/output.ts'
import { sanitize } from './report/sanitize.ts'
import { toUserMessage } from './scanning/outcome.ts'
import { Cancelled, toMessage, UserError } from './user-errors.ts'

// Only this line ends the process.
process.exit(await run(process.argv.slice(2)).catch(reportError))

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
  // Commands other than scan are loaded on demand, so that a scan starts faster.
  if (name === 'watch') return await (await import('./commands/watch.ts')).watch(parsed, env)
  if (name === 'result') return await (await import('./commands/result.ts')).result(parsed, env)
  if (name === 'listen') return await (await import('./commands/listen.ts')).listen(parsed, env)
  if (name === 'login') return await (await import('./commands/login.ts')).login(parsed, env)
  if (name === 'logout') return await (await import('./commands/login.ts')).logout(env)
  if (name === 'me') return await (await import('./commands/me.ts')).me(parsed, env)
  const shell = shells.find((each) => each === parsed.args[0])
  if (shell === undefined) throw new UserError(`Specify a shell: assay-scan completion ${shells.join('|')}.`)
  return await print(toCompletion(shell))
}

/** Prints the message without a stack and returns the exit code. */
function reportError(error: unknown): number {
  if (error instanceof Cancelled) return error.exitCode
  const message =
    error instanceof AssayError
      ? toUserMessage(error)
      : error instanceof UserError
        ? error.message
        : `Internal error: ${toMessage(error)}`
  process.stderr.write(`assay-scan: ${sanitize(message)}\n`)
  return exitCodes.error
}
