import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { loadConfig } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { askReadiness, type Readiness, toLocalUrl } from './ask-readiness.ts'
import { newCommand, print } from './terminal.ts'

const pollMs = 200
const maxWaitSeconds = 3600

/** For those who cannot ask over HTTP: container engines and service managers, with the exit code alone. */
export function makeHealthCommand(): Command {
  return newCommand('health', 'ask the running service whether it is ready; exit code 1 when it is not')
    .option('--wait <seconds>', 'keep asking for so long until it is', '0')
    .action(async ({ wait }: { wait: string }, command: Command) => {
      const seconds = Number(wait)
      if (!(seconds >= 0 && seconds <= maxWaitSeconds)) {
        throw new OperatorMistake(`--wait must be a number of seconds from 0 to ${maxWaitSeconds}; "${wait}" is not.`)
      }
      const { config } = loadConfig(process.env)
      if (config.port === 0) throw new OperatorMistake('ASSAY_PORT is 0, so nobody knows where the service listens.')
      const url = toLocalUrl(config)
      const { status, reasons } = await askUntilServing(url, seconds * 1000)
      print(command, { url, status, reasons }, [`${url} is ${status}.`, ...reasons].join(' '))
      if (status === 'unavailable') process.exitCode = 1
    })
}

/** Degraded serves too: restarting it would not bring back what is missing. */
async function askUntilServing(url: string, patienceMs: number): Promise<Readiness> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const found = await askReadiness(url).catch(
      (error: NodeJS.ErrnoException): Readiness => ({
        status: 'unavailable',
        reasons: [`It does not answer (${error.code ?? error.message}).`],
      }),
    )
    if (found.status !== 'unavailable' || performance.now() >= deadline) return found
    await sleep(pollMs)
  }
}
