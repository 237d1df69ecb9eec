import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { ConfigMistakes } from './config/load-config.ts'
import { OperatorMistake } from './domain/problem.ts'

// Kept for the next start, which takes half the time then. In the installation itself: whoever may write there may change
// the program anyway. Where nobody may, nothing is kept.
enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/assay', import.meta.url)))

try {
  const { makeProgram } = await import('./commands/program.ts')
  await makeProgram().parseAsync()
  await flush()
  process.exit()
} catch (error) {
  const code = report(error)
  await flush()
  process.exit(code)
}

/** A pipe takes only as much as it has room for; the rest would end with the process. */
function flush(): Promise<void> {
  // Whoever closed it does not want the rest.
  process.stdout.on('error', () => {})
  return new Promise((resolve) => process.stdout.write('', () => resolve()))
}

/** 0 done, 1 failed, 2 typed wrong. */
function report(error: unknown): number {
  // Help, version and usage errors: commander has printed them.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const message = toMessage(error)
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify({ error: message })}\n`)
  process.stderr.write(`${message}\n`)
  return 1
}

function toMessage(error: unknown): string {
  if (error instanceof ConfigMistakes)
    return `Some settings are wrong:\n${error.mistakes.map((m) => `- ${m}`).join('\n')}`
  if (error instanceof OperatorMistake || !(error instanceof Error)) return String((error as Error).message ?? error)
  const { code, port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string }
  if (code === 'EADDRINUSE') {
    return `Another program listens on ${address}:${port}. Stop it, or choose another ASSAY_PORT (and ASSAY_METRICS_PORT).`
  }
  return process.env.ASSAY_LOG_LEVEL === 'debug' ? (error.stack ?? error.message) : error.message
}
