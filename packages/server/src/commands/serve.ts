import type { Command } from 'commander'
import { loadConfig } from '../config/load-config.ts'
import type { Registered } from '../domain/accounts/registration.ts'
import { makeLogger } from '../runtime/logger.ts'
import { waitForStop } from '../runtime/signals.ts'
import { version } from '../runtime/version.ts'
import { newCommand, print } from './terminal.ts'

export function makeServeCommand(): Command {
  return newCommand('serve', 'run the service until it is stopped').action(
    async (_options: unknown, command: Command) => {
      const { config, warnings } = loadConfig(process.env)
      const log = makeLogger({ level: config.logLevel, region: config.region })
      for (const warning of warnings) log.warn(warning)
      const stop = waitForStop()
      // Loaded only here: the other commands start twice as fast without the HTTP server.
      const { openService } = await import('../compose/service.ts')
      const service = await openService(config, log)
      const { url, metricsPort, first } = service
      print(command, toJson(service), toGreeting(url, first, config.bootstrapKey !== undefined))
      log.info({ url, metricsPort, version, pid: process.pid }, 'ready')

      const signal = await stop
      log.info({ signal }, 'stopping; running requests may finish')
      await service.close()
      log.info('stopped')
      log.flush()
    },
  )
}

function toGreeting(url: string, first: Registered | undefined, keyWasGiven: boolean): string {
  const ready = `Assay ${version} is ready at ${url} (reference: ${url}/reference). Ctrl-C stops it.`
  if (first === undefined) return ready
  // A secret that came in by the environment is not ours to show.
  const key = keyWasGiven ? '$ASSAY_BOOTSTRAP_KEY' : first.apiKey
  const secrets = keyWasGiven
    ? 'The first account was created with the given key.'
    : `The first account was created. These two are shown this once; store them now:

  API key         ${first.apiKey}
  webhook secret  ${first.webhookSecret}`
  return `${ready}

${secrets}

Try it:

  curl -H "X-API-Key: ${key}" ${url}/v1/me
`
}

const toJson = (service: { url: string; metricsPort: number; first: Registered | undefined }) => ({
  url: service.url,
  metrics_port: service.metricsPort,
  ...(service.first === undefined
    ? {}
    : {
        id: service.first.account.id,
        api_key: service.first.apiKey,
        webhook_secret: service.first.webhookSecret,
      }),
})
