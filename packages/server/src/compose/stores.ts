import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { claimInstallation, isTestInstallation, makeAccountStore, makePlanStore } from '../database/account-store.ts'
import { makeActivityStore } from '../database/activity-store.ts'
import { makeAlertStore } from '../database/alert-store.ts'
import { makeAuditLog } from '../database/console/audit-log.ts'
import { makeMemberStore } from '../database/console/member-store.ts'
import { makeAttemptStore } from '../database/console/session-store.ts'
import { isOutage } from '../database/database-error.ts'
import { makeDeliveryStore } from '../database/delivery-store.ts'
import { prepareDataDir } from '../database/embedded/layout.ts'
import { openEmbedded } from '../database/embedded/open-embedded.ts'
import { makeHashListStore } from '../database/hash-list-store.ts'
import { makeJobStore } from '../database/job-store.ts'
import { makeKeyStore } from '../database/key-store.ts'
import { countMigrationsDone, listPendingMigrations, migrate } from '../database/migrate.ts'
import { type Database, openDatabase } from '../database/open-database.ts'
import { makeNodeStore } from '../database/operations.ts'
import { makeRevisionStore } from '../database/revision-store.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeDownloadCredentialStore, makeReceiptKeyStore } from '../database/secret-stores.ts'
import { toLackTable } from '../database/server-lacks.ts'
import { makeSignatureStore } from '../database/signature-store.ts'
import { makeSourceStore } from '../database/source-store.ts'
import { makeRegistration } from '../domain/accounts/registration.ts'
import { makeAuthentication, makePasswords } from '../domain/console/authentication.ts'
import { makeInvitations } from '../domain/console/invitations.ts'
import { makeSignIn } from '../domain/console/sign-in.ts'
import { makeThrottle } from '../domain/console/throttle.ts'
import { decideRevision, makeRevisionBody } from '../domain/knowledge/hash-lists.ts'
import type { Sealer } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { type Closers, newClosers } from '../runtime/closers.ts'
import { explainFileError, FileLockUnavailable, takeFileLock } from '../runtime/files.ts'
import type { Logger } from '../runtime/logger.ts'
import { makePasswordHashing } from '../runtime/password-hashing.ts'
import { toCommandActor } from '../runtime/process.ts'
import { makeSealing } from './sealing.ts'

type Role = 'service' | 'command'

/** Connects to the database: the one of ASSAY_DATABASE_URL, or the embedded one in the data directory. */
export async function openConnection(config: Config, role: Role, log: Logger) {
  const closers = newClosers()
  try {
    // Released last: whatever happens to the database meanwhile, no other service uses the directory.
    if (role === 'service') closers.add(await lockDataDir(config).catch(throwExplained(config)))
    // Commands hold locks and read whole tables, so they go past a pooler.
    const isDirect = role === 'command' && config.databaseDirectUrl !== undefined
    let url = isDirect ? config.databaseDirectUrl : config.databaseUrl
    if (url === undefined) {
      const embedded = await openEmbedded({ dataDir: config.dataDir, as: role, log }).catch(throwExplained(config))
      closers.add(embedded.close)
      url = embedded.url
    }
    const directUrl = isDirect ? undefined : config.databaseDirectUrl
    return await connect(config, { url, directUrl }, { log, closers })
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

type Urls = { url: string; directUrl: string | undefined }

async function connect(config: Config, urls: Urls, { log, closers }: { log: Logger; closers: Closers }) {
  const isEmbedded = config.databaseUrl === undefined
  try {
    const database = await openDatabase({ ...urls, connections: config.databaseConnections, log, isEmbedded })
    closers.add(database.close)
    return { database, close: closers.closeAll }
  } catch (error) {
    if (isEmbedded) throw error
    const { message } = error as Error
    const end = message.endsWith('\n') ? '' : '. '
    throw new OperatorMistake(`The database cannot be used: ${message}${end}Check ASSAY_DATABASE_URL.`, {
      cause: error,
    })
  }
}

/** Makes this process the only service of its data directory, and returns the function that ends that. */
async function lockDataDir(config: Config): Promise<() => void> {
  const dataDir = prepareDataDir(config.dataDir)
  try {
    const lock = takeFileLock(join(dataDir, 'service.lock'))
    if ('release' in lock) return lock.release
    const { pid, host } = lock.heldBy
    const holder = host === hostname() ? `process ${pid}` : `process ${pid} on ${host}`
    throw new OperatorMistake(
      `Assay is already running on ${config.dataDir} (${holder}). Stop it first, or use another ASSAY_DATA_DIR.`,
    )
  } catch (error) {
    if (!(error instanceof FileLockUnavailable)) throw error
    throw new OperatorMistake(
      `The data directory ${dataDir} is on a file system without file locks: ${error.message}. Set ASSAY_DATA_DIR to a directory on another.`,
      { cause: error },
    )
  }
}

/**
 * Returns a function that throws errors of files in the data directory, and the loss of the database, as sentences for
 * the operator.
 */
export const throwExplained =
  (config: Config) =>
  (error: unknown): never => {
    const sentence = explainFileError(error, config.dataDir) ?? explainOutage(error, config)
    throw sentence === undefined ? error : new OperatorMistake(sentence, { cause: error })
  }

function explainOutage(error: unknown, { databaseUrl, dataDir }: Config): string | undefined {
  if (error instanceof OperatorMistake || !isOutage(error)) return undefined
  const { message, code } = error as Error & { code?: string }
  const remedy =
    databaseUrl === undefined
      ? `Read its log, ${join(resolve(dataDir), 'postgres', 'postgres.log')}`
      : 'Make sure that PostgreSQL runs and that ASSAY_DATABASE_URL is right'
  return `The connection to the database was lost: ${message || code}. ${remedy}, then try again. An interrupted migration is repeated.`
}

/** Migrates the database. Returns the names of the applied migrations. */
export async function migrateDatabase(config: Config, log: Logger): Promise<string[]> {
  const { database, close } = await openConnection(config, 'command', log)
  try {
    const applied = await migrate({ ...database, log })
    if (applied.length > 0) {
      await makeAuditLog(database).note({ actor: toCommandActor(), action: 'migrate', target: applied.join(', ') })
    }
    return applied
  } finally {
    await close()
  }
}

/**
 * Opens the stores that operator commands use. A service migrates the schema; a command creates it only if there is
 * none.
 */
export async function openStores(config: Config, role: Role, log: Logger, wanted = { isTest: false }) {
  const { database, close } = await openConnection(config, role, log)
  try {
    const { pool: direct } = database.direct
    if (role === 'service' || (await countMigrationsDone(direct)) === 0) await migrate({ pool: direct, log })
    else await requireCurrentSchema(database, log)
    if (role === 'service') logLacks(database, log)
    const isTest = role === 'service' ? await claimMode(database, wanted) : await isTestInstallation(database)
    const sealing = makeSealing(config, database)
    if (role === 'service') await sealing.getKey()
    const { pool } = database
    const accounts = makeAccountStore({ pool, sealer: sealing })
    const keys = makeKeyStore(database)
    const plans = makePlanStore(database)
    return {
      database,
      sealing,
      accounts,
      keys,
      plans,
      registration: makeRegistration({ accounts, keys, plans, isTestInstallation: isTest }),
      auth: makeAuth(database, sealing, log),
      // Without queues this store counts jobs but claims none; the workers have their own.
      jobs: makeJobStore({ ...database, listQueues: () => [] }),
      deliveries: makeDeliveryStore({ pool, sealer: sealing }),
      scans: makeScanStore(database),
      nodes: makeNodeStore(database),
      activity: makeActivityStore(database),
      alerts: makeAlertStore({ pool, sealer: sealing }),
      signatures: makeSignatureStore(database),
      downloadCredentials: makeDownloadCredentialStore({ pool, sealer: sealing }),
      receiptKeys: makeReceiptKeyStore({ pool, sealer: sealing }),
      hashLists: makeHashListStore(database),
      revisions: makeRevisionStore({ pool, decide: decideRevision, makeBody: makeRevisionBody }),
      sources: makeSourceStore(database),
      close,
    }
  } catch (error) {
    await close()
    return throwExplained(config)(error)
  }
}

export type Stores = Awaited<ReturnType<typeof openStores>>

/** Writes a table of what the server of PostgreSQL lacks, though Assay works without it. */
function logLacks({ lacks }: Database, log: Logger) {
  if (lacks.length === 0) return
  log.warn({ lacks: toLackTable(lacks).split('\n') }, 'PostgreSQL lacks settings that Assay needs to be safe and fast')
}

/** Makes the access control of the console: members, their sessions and their invitations. */
function makeAuth(database: Database, sealer: Sealer, log: Logger) {
  const members = makeMemberStore({ pool: database.pool, sealer })
  const { pool } = database
  // The log of the service is often kept on another machine, out of reach of a person who rewrites the audit log.
  const audit = makeAuditLog({
    pool,
    onNoted: ({ id, hash }) => log.info({ auditRow: id, auditHash: hash }, 'added a row to the audit log'),
  })
  const throttle = makeThrottle({ attempts: makeAttemptStore(database) })
  const passwords = makePasswords(makePasswordHashing())
  const shared = { members, passwords, throttle, audit, clock: database.clock }
  const authentication = makeAuthentication(shared)
  const signIn = makeSignIn({ ...shared, authentication })
  const invitations = makeInvitations({ ...shared, authentication, signIn })
  return { members, audit, passwords, throttle, authentication, signIn, invitations }
}

/** Binds the database to test mode or to scanning, because test mode calls content clean without scanning it. */
async function claimMode(database: Database, { isTest }: { isTest: boolean }): Promise<boolean> {
  const decided = await claimInstallation(database, { isTest })
  if (decided === isTest) return decided
  throw new OperatorMistake(
    isTest
      ? 'This database belongs to an installation that scans, and test mode answers without scanning. ' +
          'Set another ASSAY_DATA_DIR or ASSAY_DATABASE_URL for test mode.'
      : 'This database belongs to a test installation, because it was first started with --test. ' +
          'Start it with --test, or set another ASSAY_DATA_DIR or ASSAY_DATABASE_URL.',
  )
}

async function requireCurrentSchema({ pool }: Database, log: Logger) {
  const pending = await listPendingMigrations({ pool, log })
  if (pending.length === 0) return
  throw new OperatorMistake(
    `The database lacks the migrations ${pending.join(', ')}. Start the service of this version, or run: npm run assay -- migrate.`,
  )
}
