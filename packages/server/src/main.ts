import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// The compile cache halves the time of later starts. It is in the installation, where only users who can change the
// program can write; without write permission nothing is cached. All other imports follow it, because modules that Node
// loads before are not cached.
enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/assay', import.meta.url)))

const [{ CommanderError }, { ConfigMistakes }, { OperatorMistake }, { makeProgram }, { hideCredentials }] =
  await Promise.all([
    import('commander'),
    import('./config/load-config.ts'),
    import('./domain/problem.ts'),
    import('./commands/program.ts'),
    import('./runtime/hide-credentials.ts'),
  ])

try {
  const program = await makeProgram(process.argv.slice(2))
  await program.parseAsync()
  await flush()
  process.exit()
} catch (error) {
  const code = report(error)
  await flush()
  process.exit(code)
}

/** Waits until standard output is written: a pipe takes only as much as it has room for, and exiting drops the rest. */
function flush(): Promise<void> {
  // A reader that closed the pipe does not want the rest.
  process.stdout.on('error', () => {})
  return new Promise((resolve) => process.stdout.write('', () => resolve()))
}

/** Prints the error and returns the exit code: 0 for help and version, 1 for a failure, 2 for wrong usage. */
function report(error: unknown): number {
  // Commander has printed help, version and usage errors already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const message = hideCredentials(toMessage(error))
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
    return `Another program listens on ${address}:${port}. Stop it, or set another ASSAY_PORT (and ASSAY_METRICS_PORT).`
  }
  return process.env.ASSAY_LOG_LEVEL === 'debug' ? (error.stack ?? error.message) : error.message
}
