import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Command } from 'commander'
import { type Config, ConfigMistakes, loadConfig } from '../config/load-config.ts'
import { askReadiness, toLocalUrl } from './ask-readiness.ts'
import { newCommand, print, withStores } from './terminal.ts'

/** What was looked at; with a fault, what is wrong and how to mend it. */
type Finding = { check: string; ok: boolean; says: string }

const minFreeBytes = 1024 ** 3
const certificateWarningMs = 14 * 86_400_000

export function makeDoctorCommand(): Command {
  return newCommand('doctor', 'look for what is wrong, and say how to mend it').action(
    async (_options: unknown, command: Command) => {
      const findings = await examine()
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
    const settings = {
      check: 'settings',
      ok: loaded.warnings.length === 0,
      says: loaded.warnings.join(' ') || 'all valid',
    }
    const findings = [settings, checkDataDir(config), checkCertificate(config)]
    return [...findings, ...(await checkDatabase()), await checkService(config)]
  } catch (error) {
    if (!(error instanceof ConfigMistakes)) throw error
    return error.mistakes.map((says) => ({ check: 'settings', ok: false, says }))
  }
}

function checkDataDir({ dataDir }: Config): Finding {
  const check = 'data directory'
  const path = resolve(dataDir)
  // Before the first start it is not there yet; what counts is that it can be made.
  const existing = existsSync(path) ? path : dirname(path)
  try {
    accessSync(existing, constants.W_OK)
    const { bavail, bsize } = statfsSync(existing)
    const free = bavail * bsize
    const says = `${path}, ${(free / 1024 ** 3).toFixed(1)} GiB free`
    return free >= minFreeBytes
      ? { check, ok: true, says }
      : { check, ok: false, says: `${says}. Make room, or move it with ASSAY_DATA_DIR.` }
  } catch (error) {
    return {
      check,
      ok: false,
      says: `${existing} cannot be used: ${(error as Error).message}. Mend that, or set ASSAY_DATA_DIR.`,
    }
  }
}

function checkCertificate({ tlsCert, tlsKey }: Config): Finding {
  const check = 'certificate'
  if (tlsCert === undefined || tlsKey === undefined) return { check, ok: true, says: 'none set; plain HTTP' }
  try {
    const cert = readFileSync(tlsCert)
    createSecureContext({ cert, key: readFileSync(tlsKey) })
    const { validTo, validToDate } = new X509Certificate(cert)
    const ok = validToDate.getTime() - Date.now() > certificateWarningMs
    return {
      check,
      ok,
      says: ok ? `valid to ${validTo}` : `valid to ${validTo} only. Renew it: it is read again by itself.`,
    }
  } catch (error) {
    return { check, ok: false, says: `${tlsCert} and ${tlsKey} cannot be used together: ${(error as Error).message}` }
  }
}

async function checkDatabase(): Promise<Finding[]> {
  const check = 'database'
  try {
    return await withStores(async ({ accounts }) => {
      const all = await accounts.listAccounts()
      const unbalanced = await accounts.listUnbalanced()
      const ledger = unbalanced.map(
        (u) => `account ${u.id} has ${u.balance} credits, but its ledger sums to ${u.ledger}.`,
      )
      return [
        { check, ok: true, says: 'reachable, schema up to date' },
        {
          check: 'accounts',
          ok: all.length > 0,
          says:
            all.length > 0
              ? `${all.length} in all, ${all.filter((a) => a.suspendedAt !== null).length} suspended`
              : 'none. Start the service once, or run: npm run assay -- accounts create --name NAME.',
        },
        { check: 'ledger', ok: ledger.length === 0, says: ledger.join(' ') || 'sums to the balance of every account' },
      ]
    })
  } catch (error) {
    return [{ check, ok: false, says: (error as Error).message }]
  }
}

async function checkService(config: Config): Promise<Finding> {
  const check = 'service'
  if (config.port === 0) return { check, ok: true, says: 'listens on a free port of its choice; not looked at' }
  const url = toLocalUrl(config)
  try {
    const { status, reasons } = await askReadiness(url)
    return { check, ok: status === 'ready', says: [`${url} is ${status}.`, ...reasons].join(' ') }
  } catch (error) {
    const cause = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    return { check, ok: false, says: `${url} does not answer (${cause}). Start it with: npm start.` }
  }
}
