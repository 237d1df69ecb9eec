import type { DiskSpace } from '../blobs/disk-space.ts'
import type { MemoryBudget } from '../blobs/memory-content.ts'
import type { Database } from '../database/open-database.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { JobStore } from '../domain/ports/job-store.ts'
import type { NodeStore } from '../domain/ports/node-store.ts'
import type { Check } from '../domain/readiness.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { Engines } from './engines.ts'

type Checked = {
  disk: DiskSpace
  engines: Engines | undefined
  /** Only where others are to do the scans. */
  nodes: NodeStore | undefined
}

export function listChecks({ watch }: Database, { disk, engines, nodes }: Checked): Check[] {
  return [
    { name: 'database', vital: true, findFault: watch.findFault },
    { name: 'disk', vital: false, findFault: async () => disk.findFault() },
    ...(engines === undefined ? [] : listEngineChecks(engines)),
    ...(nodes === undefined ? [] : [makeWorkerCheck(nodes)]),
  ]
}

const listEngineChecks = ({ malware, images }: Engines): Check[] => [
  { name: 'malware engine', vital: false, findFault: async () => malware.findFault() },
  { name: 'NSFW image engine', vital: false, findFault: async () => images.findFault() },
]

/** On a node without engines of its own. */
const makeWorkerCheck = (nodes: NodeStore): Check => ({
  name: 'workers',
  vital: true,
  async findFault() {
    if ((await nodes.countWorkers()) > 0) return undefined
    return 'This node has no engines of its own, and no worker was seen within 15 s. Start a node with ASSAY_ROLES=worker.'
  },
})

export function observeEngines(metrics: Metrics, { malware, images }: Engines) {
  const states = () => malware.listEngines().flatMap((engine) => engine.findState() ?? [])
  const count = () => states().reduce((sum, { signatures }) => sum + (signatures ?? 0), 0)
  const newest = () => Math.max(0, ...states().map(({ signaturesAt }) => signaturesAt?.getTime() ?? 0)) / 1000
  metrics.gauge('assay_signatures', 'Signatures that are in use.', count)
  metrics.gauge('assay_signatures_timestamp_seconds', 'When the newest signatures came out.', newest)
  metrics.gauge('assay_scans_waiting', 'Scans of large content that wait for their turn.', malware.countWaiting)
  metrics.gauge('assay_images_waiting', 'Pictures that wait for their turn.', images.countWaiting)
}

export function observeDatabase(metrics: Metrics, { pool, watch }: Database) {
  metrics.gauge('assay_database_up', '1 while the database answers, 0 while it is away.', () =>
    watch.isAway() ? 0 : 1,
  )
  metrics.gauge('assay_database_outages', 'How often the database was away since the start.', watch.countOutages)
  metrics.gauge('assay_database_connections', 'Open connections to the database.', () => pool.totalCount)
  metrics.gauge('assay_database_waiting', 'Callers that wait for a connection.', () => pool.waitingCount)
}

export function observeBounds(metrics: Metrics, { memory, disk }: { memory: MemoryBudget; disk: DiskSpace }) {
  metrics.gauge('assay_content_memory_bytes', 'Content that lies in memory.', memory.countBytes)
  metrics.gauge('assay_disk_free_bytes', 'Free space on the disk of the data directory.', disk.countFree)
}

export function observeQueues(metrics: Metrics, { jobs, deliveries }: { jobs: JobStore; deliveries: DeliveryStore }) {
  const toAge = (since: Date | undefined) =>
    since === undefined ? 0 : Math.max(0, Date.now() - since.getTime()) / 1000
  metrics.gauges(
    {
      assay_jobs_waiting: 'Background scans that wait.',
      assay_jobs_running: 'Background scans that run, in all processes.',
      assay_jobs_oldest_seconds: 'How long the oldest background scan has been waiting.',
    },
    async () => {
      const { waiting, running, oldestAt } = await jobs.countJobs()
      return { assay_jobs_waiting: waiting, assay_jobs_running: running, assay_jobs_oldest_seconds: toAge(oldestAt) }
    },
  )
  metrics.gauges(
    {
      assay_deliveries_waiting: 'Webhook deliveries that are to be tried, now or later.',
      assay_deliveries_late_seconds: 'How long the oldest webhook delivery that is due has been so.',
    },
    async () => {
      const { waiting, oldestDueAt } = await deliveries.countDeliveries()
      return { assay_deliveries_waiting: waiting, assay_deliveries_late_seconds: toAge(oldestDueAt) }
    },
  )
}
