import { hostname } from 'node:os'
import { v7 as newUuid } from 'uuid'
import type { DiskSpace } from '../blobs/disk-space.ts'
import type { Database } from '../database/open-database.ts'
import { readHomeContact } from '../database/regions.ts'
import type { Clock } from '../domain/clock.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { EngineKind, EngineState, ExternalStatus } from '../domain/ports/engines.ts'
import type { JobStore } from '../domain/ports/job-store.ts'
import type { AssayNode, NodeStore } from '../domain/ports/operations.ts'
import type { ScanStore } from '../domain/ports/scan-store.ts'
import type { Check, Readiness } from '../domain/readiness.ts'
import type { Degradation } from '../domain/scans/scanner.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { watchStalls } from '../runtime/timers.ts'
import type { Engines } from './engines.ts'
import { listExternalChecks, observeExternal } from './external-engines.ts'
import type { Sealing } from './sealing.ts'

export type EngineStatus = {
  name: string
  kind: EngineKind
  state: EngineState | undefined
  external?: ExternalStatus | undefined
}

type Checked = { database: Database; sealing: Sealing; jobDisk: DiskSpace; nodes: NodeStore; checks: Check[] }

/** Lists the checks behind `/readyz`. A node without engines needs a worker instead; test mode needs neither. */
export function listChecks(
  storage: Checked,
  { engines, degradation }: { engines: Engines | undefined; degradation: Degradation },
  isTest: boolean,
): Check[] {
  const { database, sealing, jobDisk, nodes } = storage
  return [
    { name: 'database', vital: true, findFault: database.watch.findFault },
    { name: 'clock', vital: false, findFault: async () => database.watch.findClockFault() },
    { name: 'master key', vital: true, findFault: sealing.findFault },
    { name: 'disk', vital: false, findFault: async () => jobDisk.findFault() },
    ...(engines === undefined
      ? [newWorkerCheck(nodes), newSignatureCheck(degradation.find)]
      : isTest
        ? []
        : listEngineChecks(engines)),
    ...storage.checks,
  ]
}

const listEngineChecks = ({ malware, images, sandbox, sharedSignatures }: Engines): Check[] => [
  { name: 'malware engine', vital: false, findFault: async () => malware.findFault() },
  ...listExternalChecks(malware.external),
  newSignatureCheck(() => sharedSignatures.findFault() ?? malware.findSignatureFault()),
  { name: 'NSFW image engine', vital: false, findFault: async () => images.findFault() },
  { name: 'sandbox', vital: false, findFault: async () => sandbox.findFault(), findNote: () => sandbox.findNote?.() },
]

const newSignatureCheck = (findFault: () => string | undefined): Check => ({
  name: 'signatures',
  vital: false,
  findFault: async () => findFault(),
})

const newWorkerCheck = (nodes: NodeStore): Check => ({
  name: 'workers',
  vital: true,
  async findFault() {
    if ((await nodes.countWorkers()) > 0) return undefined
    return 'This node has no engines of its own, and no worker was seen within 15 s. Start a node with ASSAY_ROLES=worker.'
  },
})

/** Makes the function that describes this process for the list of nodes. */
export function makeNodeInfo(deps: {
  roles: string[]
  readiness: Readiness
  degradation: Degradation
  listEngines(): EngineStatus[]
  /** A sentence while little space is left, before content is refused. */
  findDiskWarning(): string | undefined
  clock: Clock
}) {
  const self = { id: newUuid(), name: hostname(), roles: deps.roles, version, startedAt: deps.clock.now() }
  return async (): Promise<AssayNode> => {
    const { status, reasons, faults } = await deps.readiness.check()
    const diskWarning = deps.findDiskWarning()
    const degraded = deps.degradation.find()
    const engines = deps.listEngines().map(({ name, kind, state }) => ({
      name,
      version: state?.version ?? null,
      signaturesAt: state?.signaturesAt?.toISOString() ?? null,
      ...(kind === 'malware' && degraded !== undefined ? { degraded } : {}),
    }))
    const allFaults = { ...(diskWarning === undefined ? {} : { disk: diskWarning }), ...faults }
    return { ...self, status, reasons, faults: allFaults, engines }
  }
}

export function observeDegradation(metrics: Metrics, degradation: Degradation) {
  const about = '1 while ClamAV or its official databases are missing or old, otherwise 0.'
  metrics.gauge('assay_degraded', about, () => (degradation.find() === undefined ? 0 : 1))
}

export function observeEngines(metrics: Metrics, { malware, images }: Engines) {
  const listStates = () => malware.listEngines().flatMap((engine) => engine.findState() ?? [])
  const count = () => listStates().reduce((sum, { signatures }) => sum + (signatures ?? 0), 0)
  metrics.gauge('assay_signatures', 'Signatures in use.', count)
  metrics.gauge(
    'assay_signatures_timestamp_seconds',
    "Build time of ClamAV's official databases, in Unix seconds; 0 without them.",
    () => (malware.findSignaturesAt()?.getTime() ?? 0) / 1000,
  )
  metrics.gauge(
    'assay_signature_update_failed',
    '1 while the last update of the signatures failed, otherwise 0.',
    () => (malware.updates?.findLast()?.ok === false ? 1 : 0),
  )
  observeExternal(metrics, malware.external)
  metrics.gauge('assay_scans_waiting', 'Malware scans of large content that wait for an engine.', malware.countWaiting)
  metrics.gauge('assay_images_waiting', 'Images that wait for an image process.', images.countWaiting)
}

/** Begins to watch the event loop. Call it when the service is ready: its start computes for longer. */
export function observeStalls(metrics: Metrics, closers: Closers) {
  const stalls = watchStalls()
  closers.add(async () => stalls.close())
  metrics.gauge(
    'assay_event_loop_stall_seconds',
    'Longest processor time for which the event loop served nothing else, within the last one to two minutes.',
    stalls.findLongestSeconds,
    'max',
  )
  metrics.total('assay_event_loop_stalls_total', 'Stalls of more than 50 ms since the start.', stalls.countStalls)
}

export function observeDatabase(metrics: Metrics, { pool, watch, clock }: Database) {
  metrics.gauge(
    'assay_clock_difference_seconds',
    'Clock of this machine minus the clock of the database. Degraded beyond 5 s.',
    () => clock.findDifferenceMs() / 1000,
  )
  metrics.gauge('assay_database_up', '1 while the database answers, 0 while it does not.', () =>
    watch.isUnavailable() ? 0 : 1,
  )
  metrics.gauge('assay_database_outages', 'Database outages since the start of the process.', watch.countOutages)
  metrics.gauge('assay_database_connections', 'Open connections to the database.', () => pool.totalCount)
  metrics.gauge('assay_database_waiting', 'Callers that wait for a database connection.', () => pool.waitingCount)
}

/** In a region that follows another: whether changes of accounts arrive. Requests are answered without them. */
export const newHomeCheck = ({ pool }: Database): Check => ({
  name: 'home region',
  vital: false,
  async findFault() {
    const contact = await readHomeContact(pool)
    if (contact?.isCutOff !== true) return undefined
    const since = contact.heardAt.toISOString()
    return `The home region was last heard at ${since}: new keys, revocations and suspensions do not arrive.`
  },
})

export function observeHome(metrics: Metrics, { pool }: Database) {
  metrics.gauges(
    {
      assay_home_connected: '1 while changes of accounts arrive from the home region, 0 while it is cut off.',
      assay_home_heard_timestamp_seconds: 'Unix time at which the home region was last heard, by the database.',
    },
    async () => {
      const contact = await readHomeContact(pool)
      return {
        assay_home_connected: contact?.isCutOff === true ? 0 : 1,
        assay_home_heard_timestamp_seconds: (contact?.heardAt.getTime() ?? 0) / 1000,
      }
    },
  )
}

export function observeQueues(metrics: Metrics, { jobs, deliveries }: { jobs: JobStore; deliveries: DeliveryStore }) {
  metrics.gauges(
    {
      assay_jobs_waiting: 'Background scans that wait, over all nodes.',
      assay_jobs_running: 'Background scans that run, over all nodes.',
      assay_jobs_oldest_seconds: 'Age of the oldest waiting background scan.',
    },
    async () => {
      const { waiting, running, oldestSeconds } = await jobs.countJobs()
      return {
        assay_jobs_waiting: waiting,
        assay_jobs_running: running,
        assay_jobs_oldest_seconds: oldestSeconds,
      }
    },
  )
  metrics.gauges(
    {
      assay_deliveries_waiting: 'Webhook deliveries with an attempt to come, due now or later.',
      assay_deliveries_late_seconds: 'Time for which the oldest due webhook delivery has been due.',
    },
    async () => {
      const { waiting, lateSeconds } = await deliveries.countDeliveries()
      return { assay_deliveries_waiting: waiting, assay_deliveries_late_seconds: lateSeconds }
    },
  )
}

const minuteMs = 60_000

type QueueStores = { jobs: JobStore; deliveries: DeliveryStore; scans: ScanStore }

/** Reads length, age and throughput of the queues of background scans and webhook deliveries. */
export async function readQueues({ jobs, deliveries, scans }: QueueStores) {
  const [queue, webhooks, completed] = await Promise.all([
    jobs.countJobs(),
    deliveries.countDeliveries(),
    scans.countCompleted(minuteMs),
  ])
  return {
    scans: {
      waiting: queue.waiting,
      running: queue.running,
      oldest_seconds: queue.oldestSeconds,
      settled_last_minute: completed,
    },
    webhooks: { waiting: webhooks.waiting, late_seconds: webhooks.lateSeconds },
  }
}
