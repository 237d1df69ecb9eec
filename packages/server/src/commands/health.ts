import type { IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { json as readJson } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { type Config, loadConfig } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { get as getPlain } from '../runtime/node-http.ts'
import { newCommand, print } from './terminal.ts'

const pollMs = 200
const maxWaitSeconds = 3600

/** For container engines and service managers, which read exit codes and cannot send HTTP requests. */
export function makeHealthCommand(): Command {
  return newCommand('health', 'check whether the running service is ready; exit code 1 if not')
    .option('--wait <seconds>', 'time to wait for it to become ready', '0')
    .action(async ({ wait }: { wait: string }, command: Command) => {
      const seconds = Number(wait)
      if (!(seconds >= 0 && seconds <= maxWaitSeconds)) {
        throw new OperatorMistake(`--wait must be a number of seconds from 0 to ${maxWaitSeconds}.`)
      }
      const { config } = loadConfig(process.env)
      if (config.port === 0) throw new OperatorMistake('ASSAY_PORT is 0, so the port of the service is not known.')
      const url = toLocalUrl(config)
      const { status, reasons } = await waitUntilServing(url, seconds * 1000)
      print(command, { url, status, reasons }, [`${url} is ${status}.`, ...reasons].join(' '))
      if (status === 'unavailable') process.exitCode = 1
    })
}

/**
 * Polls until the service is ready or degraded. A degraded service still answers, and a restart would not repair it.
 */
async function waitUntilServing(url: string, withinMs: number): Promise<Readiness> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const readiness = await fetchReadiness(url).catch(
      (error: NodeJS.ErrnoException): Readiness => ({
        status: 'unavailable',
        reasons: [`The service does not answer (${error.code ?? error.message}).`],
      }),
    )
    if (readiness.status !== 'unavailable' || performance.now() >= deadline) return readiness
    await sleep(pollMs)
  }
}

type Readiness = { status: 'ready' | 'degraded' | 'unavailable'; reasons: string[] }

/** The URL of the service with these settings, for requests from its own machine. */
export function toLocalUrl({ host, port, tlsCert }: Pick<Config, 'host' | 'port' | 'tlsCert'>): string {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `${tlsCert === undefined ? 'http' : 'https'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Requests `/readyz`; throws when the service does not answer. */
export async function fetchReadiness(url: string): Promise<Readiness> {
  const get = url.startsWith('https:') ? getSecure : getPlain
  // The certificate names the host that clients use, not this address.
  const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(5000) }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/readyz`, options, resolve).once('error', reject)
  })
  return (await readJson(answer)) as Readiness
}
