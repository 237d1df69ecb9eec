import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { dirname, resolve } from 'node:path'
import { json as readJson } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { Command } from 'commander'
import { checkExternal } from '../compose/external-engines.ts'
import { type ListenerDefinition, readListeners } from '../compose/listener-definitions.ts'
import type { Stores } from '../compose/stores.ts'
import { type Config, ConfigMistakes, loadConfig } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { get as getPlain } from '../runtime/node-http.ts'
import { newCommand, print, withStores } from './terminal.ts'

/** The result of one check. For a fault, `says` describes it and how to fix it. */
type Finding = { check: string; ok: boolean; says: string }

const minFreeBytes = 1024 ** 3
const certificateWarningMs = 14 * 86_400_000

export function makeDoctorCommand(): Command {
  return newCommand('doctor', 'check the installation, and print how to fix each fault').action(
    async (_options: unknown, command: Command) => {
      const findings = (await examine()).map((finding) => ({ ...finding, says: hideCredentials(finding.says) }))
      const text = findings.map(({ check, ok, says }) => `${ok ? 'ok   ' : 'FAULT'}  ${check}: ${says}`).join('\n')
      print(command, { healthy: findings.every(({ ok }) => ok), findings }, text)
      if (findings.some(({ ok }) => !ok)) process.exitCode = 1
    },
  )
}

async function examine(): Promise<Finding[]> {
  let config: Config
  try {
    const loaded = loadConfig(process.env)
    config = loaded.config
    await checkExternal(config)
    const settings = {
      check: 'settings',
      ok: loaded.warnings.length === 0,
      says: loaded.warnings.join(' ') || 'all valid',
    }
    const listeners = readListeners(config)
    const findings = [settings, checkDataDir(config), checkCertificate(config), await checkSandbox()]
    return [
      ...findings,
      ...listeners.flatMap(({ name, tls }) =>
        tls === undefined ? [] : [checkExpiry(`certificate of the listener ${name}`, tls.certFile, tls.read)],
      ),
      ...(await checkSingleSignOn(config)),
      ...(await checkContentStore(config)),
      ...(await checkDatabase(config, listeners)),
      await checkService(config),
    ]
  } catch (error) {
    if (!(error instanceof ConfigMistakes)) throw error
    return error.mistakes.map((says) => ({ check: 'settings', ok: false, says }))
  }
}

function checkDataDir({ dataDir }: Config): Finding {
  const check = 'data directory'
  const path = resolve(dataDir)
  // Before the first start the directory does not exist; its parent must be writable then.
  const existing = existsSync(path) ? path : dirname(path)
  try {
    accessSync(existing, constants.W_OK)
    const { bavail, bsize } = statfsSync(existing)
    const free = bavail * bsize
    const says = `${path}, ${(free / 1024 ** 3).toFixed(1)} GiB free`
    return free >= minFreeBytes
      ? { check, ok: true, says }
      : { check, ok: false, says: `${says}. Free some space, or set ASSAY_DATA_DIR to a directory on another disk.` }
  } catch (error) {
    return {
      check,
      ok: false,
      says: `${existing} cannot be used: ${(error as Error).message}. Fix that, or set ASSAY_DATA_DIR.`,
    }
  }
}

function checkCertificate({ tlsCert, tlsKey }: Config): Finding {
  const check = 'certificate'
  if (tlsCert === undefined || tlsKey === undefined) return { check, ok: true, says: 'none (plain HTTP)' }
  return checkExpiry(check, tlsCert, () => ({ cert: readFileSync(tlsCert), key: readFileSync(tlsKey) }))
}

function checkExpiry(check: string, certFile: string, read: () => SecureContextOptions): Finding {
  try {
    createSecureContext(read())
    const { validTo, validToDate } = new X509Certificate(readFileSync(certFile))
    const ok = validToDate.getTime() - Date.now() > certificateWarningMs
    return {
      check,
      ok,
      says: ok ? `valid until ${validTo}` : `expires on ${validTo}. Renew it; Assay reloads it without a restart.`,
    }
  } catch (error) {
    return { check, ok: false, says: `${certFile} and its key cannot be used together: ${(error as Error).message}` }
  }
}

async function checkSandbox(): Promise<Finding> {
  const check = 'sandbox'
  try {
    // Imported here, because no other command needs it.
    const { describeSandbox } = await import('../compose/sandbox.ts')
    const { fault, note } = describeSandbox()
    return { check, ok: fault === undefined, says: [fault, note].filter(Boolean).join(' ') || 'complete' }
  } catch (error) {
    return { check, ok: false, says: (error as Error).message }
  }
}

async function checkSingleSignOn(config: Config): Promise<Finding[]> {
  if (config.ssoIssuer === undefined) return []
  // Imported here, because no other command needs it.
  const { checkIssuer } = await import('../compose/single-sign-on.ts')
  return [{ check: 'single sign-on', ...(await checkIssuer(config)) }]
}

async function checkContentStore(config: Config): Promise<Finding[]> {
  if (config.blobs.at === 'disk') return []
  const check = 'content store'
  try {
    // Imported here, because no other command needs it.
    const storage = await import('../compose/storage.ts')
    const faults = (await storage.checkContentStore(config)) ?? []
    const says = `bucket ${config.blobs.bucket}: listing, writing, reading, uploading in parts and deleting work`
    return faults.length === 0
      ? [{ check, ok: true, says }]
      : faults.map((fault) => ({ check, ok: false, says: fault }))
  } catch (error) {
    return [{ check, ok: false, says: (error as Error).message }]
  }
}

async function checkDatabase(config: Config, listeners: ListenerDefinition[]): Promise<Finding[]> {
  const check = 'database'
  try {
    return await withStores(async (stores) => {
      const { accounts, database } = stores
      const all = await accounts.listAccounts()
      const unbalanced = await accounts.listUnbalanced()
      const ledger = unbalanced.map(
        (u) => `account ${u.id} has ${u.balance} credits, but its ledger sums to ${u.ledger}.`,
      )
      return [
        { check, ok: true, says: 'reachable, schema up to date' },
        ...database.lacks.map(({ what, has, needs, because }) => ({
          check: `PostgreSQL ${what}`,
          ok: false,
          says: `has ${has}, needs ${needs}: ${because}.`,
        })),
        toClockFinding(database.clock.findFault()),
        {
          check: 'accounts',
          ok: all.length > 0,
          says:
            all.length > 0
              ? `${all.length} accounts, ${all.filter((a) => a.suspendedAt !== null).length} suspended`
              : 'none. Start the service once, or run: npm run assay -- accounts create --name NAME.',
        },
        { check: 'ledger', ok: ledger.length === 0, says: ledger.join(' ') || 'matches the balance of every account' },
        ...checkRoleRules(config, all),
        ...(await checkListeners(listeners, stores)),
      ]
    })
  } catch (error) {
    return [{ check, ok: false, says: (error as Error).message }]
  }
}

async function checkListeners(listeners: ListenerDefinition[], stores: Stores): Promise<Finding[]> {
  if (listeners.length === 0) return []
  // Imported here, because most installations have no listener.
  const { checkListener } = await import('../compose/listeners.ts')
  return Promise.all(
    listeners.map(async (one) => ({ check: `listener ${one.name}`, ...(await checkListener(one, stores)) })),
  )
}

/** Rules of single sign-on that name an account which does not exist give nobody a role. */
function checkRoleRules({ ssoRoles }: Config, accounts: { id: string }[]): Finding[] {
  const missing = ssoRoles.flatMap(({ accountId }) =>
    accountId === null || accounts.some(({ id }) => id === accountId) ? [] : [accountId],
  )
  if (missing.length === 0) return []
  const says = `ASSAY_SSO_ROLES names accounts that do not exist: ${missing.join(', ')}.`
  return [{ check: 'single sign-on roles', ok: false, says }]
}

const toClockFinding = (fault: string | undefined): Finding => ({
  check: 'clock',
  ok: fault === undefined,
  says: fault ?? "agrees with PostgreSQL's",
})

async function checkService(config: Config): Promise<Finding> {
  const check = 'service'
  if (config.port === 0) return { check, ok: true, says: 'not checked: ASSAY_PORT=0 selects a free port' }
  const url = toLocalUrl(config)
  try {
    const { status, reasons } = await fetchReadiness(url)
    return { check, ok: status === 'ready', says: [`${url} is ${status}.`, ...reasons].join(' ') }
  } catch (error) {
    const cause = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    return { check, ok: false, says: `${url} does not answer (${cause}). Start it with: npm start.` }
  }
}

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
function toLocalUrl({ host, port, tlsCert }: Pick<Config, 'host' | 'port' | 'tlsCert'>): string {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `${tlsCert === undefined ? 'http' : 'https'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Requests `/readyz`; throws when the service does not answer. */
async function fetchReadiness(url: string): Promise<Readiness> {
  const get = url.startsWith('https:') ? getSecure : getPlain
  // The certificate names the host that clients use, not this address.
  const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(5000) }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/readyz`, options, resolve).once('error', reject)
  })
  return (await readJson(answer)) as Readiness
}
