import type { Command } from 'commander'
import { countHttpProcesses, readCertificate } from '../compose/connections.ts'
import { checkExternal } from '../compose/external-engines.ts'
import { readListeners } from '../compose/listener-definitions.ts'
import { openStores, throwExplained } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import type { RegisteredAccount } from '../domain/accounts/registration.ts'
import { makeServiceLogs } from '../runtime/logger.ts'
import { returnUnusedMemory } from '../runtime/memory.ts'
import { version } from '../runtime/process.ts'
import { newCommand, print, toCard } from './terminal.ts'

/**
 * Which secrets of the first account were configured. An operator who configures the key keeps secrets out of the log of
 * the container or unit, so then nothing secret is printed: commands print the webhook secret and the operator's link.
 */
type ConfiguredSecrets = { key: boolean; webhookSecret: boolean }

export function makeServeCommand(): Command {
  return newCommand('serve', 'run the service until it is stopped')
    .option('--test', 'run in test mode: nothing is scanned, the file name determines the verdict (docs/test-mode.md)')
    .action(async ({ test: isTest = false }: { test?: boolean }, command: Command) => {
      const { config, warnings } = loadConfig(process.env)
      // Mistakes in files that settings name are found here, before the database and the engines start.
      await checkExternal(config)
      readListeners(config)
      readCertificate(config)
      const logs = makeServiceLogs({
        level: config.logLevel,
        region: config.region,
        format: config.logFormat,
        requests: config.logRequests === undefined ? undefined : config.logRequests === 'on',
        isShared: countHttpProcesses(config) > 1,
      })
      const { log } = logs
      for (const warning of warnings) log.warn(warning)
      const stop = waitForStop()
      // Imported here, so that other commands start without it, and while the database starts.
      const [stores, { openService }] = await Promise.all([
        openStores(config, 'service', log, { isTest }),
        import('../compose/service.ts'),
      ])
      const service = await openService(config, logs, { stores, isTest }).catch(throwExplained(config))
      const { url, metricsPort } = service
      const opened = { ...service, publicUrl: config.publicUrl }
      const configured = {
        key: config.bootstrapKey !== undefined,
        webhookSecret: config.bootstrapWebhookSecret !== undefined,
      }
      const greeting = config.roles.api ? toGreeting(opened, configured, isTest) : toWorkerGreeting(opened)
      print(command, { ...toJson(opened, configured), ...(isTest && { test: true }) }, greeting)
      // A person who sees the log and the greeting on one terminal has just read this.
      if (!(process.stdout.isTTY && process.stderr.isTTY)) {
        if (isTest) log.warn(testNotice)
        if (service.degraded !== undefined) log.warn(service.degraded)
        log.info({ url, metricsPort, version, pid: process.pid }, 'ready')
      }

      setTimeout(returnUnusedMemory, startGarbageMs).unref()
      const signal = await stop
      log.info({ signal }, 'stopping; running requests may finish')
      await service.close()
      log.info('stopped')
      await logs.flush()
    })
}

/** Until then V8 collects the garbage of the start, of which glibc would keep 20 MB in an idle service. */
const startGarbageMs = 1000

const testNotice = 'Test mode: nothing is scanned. The file name determines the verdict; see docs/test-mode.md.'

const toWorkerGreeting = ({ url, degraded }: Service) =>
  `Assay ${version} is ready as a worker; its health is at ${url}/readyz. Press Ctrl-C to stop.${
    degraded === undefined ? '' : `\n\nDegraded: ${degraded}`
  }`

type Service = {
  url: string
  publicUrl: string | undefined
  metricsPort: number
  firstAccount: RegisteredAccount | undefined
  /** Invitation of the first operator; its token is undefined when a command prints the link. */
  welcome: { token: string | undefined } | undefined
  degraded: string | undefined
}

const toWelcomeUrl = ({ url, publicUrl, welcome }: Service) =>
  welcome?.token && `${publicUrl ?? url}/console/welcome#${welcome.token}`

function toGreeting(service: Service, configured: ConfiguredSecrets, isTest: boolean): string {
  const { url, firstAccount } = service
  const rows = {
    Console: toConsole(service),
    Reference: `${url}/reference`,
    ...(firstAccount === undefined ? {} : toSecrets(firstAccount, configured)),
    ...(isTest ? { 'Test mode': 'nothing is scanned; the file name determines the verdict (docs/test-mode.md)' } : {}),
    ...(service.degraded === undefined || isTest ? {} : { Degraded: service.degraded }),
  }
  const next = firstAccount === undefined ? '' : toNextSteps(url, configured.key ? undefined : firstAccount.apiKey)
  return `Assay ${version} is ready at ${url}\n\n${indent(toCard(rows))}\n${next}\nPress Ctrl-C to stop.\n`
}

const indent = (text: string) => text.replaceAll(/^/gm, '  ')

function toConsole(service: Service): string {
  if (service.welcome === undefined) return `${service.publicUrl ?? service.url}/console`
  const link = toWelcomeUrl(service)
  return link === undefined
    ? 'has no operator yet; for a link for the first one, run: npm run assay -- operators invite'
    : `${link} (works once)`
}

function toSecrets({ account, apiKey, webhookSecret }: RegisteredAccount, configured: ConfiguredSecrets) {
  const show = `run: npm run assay -- webhooks show-secret --account ${account.id}`
  return {
    ...(configured.key ? {} : { 'API key': `${apiKey} (shown only once: store it now)` }),
    ...(configured.webhookSecret ? {} : { 'Webhook secret': configured.key ? show : webhookSecret }),
  }
}

function toNextSteps(url: string, apiKey = '$ASSAY_BOOTSTRAP_KEY'): string {
  const key = `-H "X-API-Key: ${apiKey}"`
  const commands = [
    `curl ${key} ${url}/v1/me`,
    `curl ${key} -F file=@README.md ${url}/v1/malware/scan/file`,
    'npm run assay -- doctor',
  ]
  return `\nNext, in another terminal:\n\n${indent(commands.join('\n'))}\n`
}

function toJson(service: Service, configured: ConfiguredSecrets) {
  const { url, metricsPort, firstAccount, degraded } = service
  const generated =
    firstAccount === undefined
      ? {}
      : {
          id: firstAccount.account.id,
          ...(configured.key ? {} : { api_key: firstAccount.apiKey }),
          ...(configured.key || configured.webhookSecret ? {} : { webhook_secret: firstAccount.webhookSecret }),
        }
  const link = toWelcomeUrl(service)
  return {
    url,
    metrics_port: metricsPort,
    ...generated,
    ...(link === undefined ? {} : { console_link: link }),
    ...(degraded === undefined ? {} : { degraded }),
  }
}

/** Resolves with the first signal to stop. A second signal ends the process at once. */
function waitForStop(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // Without a listener the next signal ends the process. npm forwards Ctrl-C a second time at once, so listeners
        // stay for a moment.
        setTimeout(() => process.removeAllListeners(signal), 500).unref()
        resolve(signal)
      })
    }
  })
}
