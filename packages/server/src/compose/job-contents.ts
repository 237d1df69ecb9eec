import { join, resolve } from 'node:path'
import { makeDiskJobContents } from '../blobs/job-contents.ts'
import type { MasterKey } from '../blobs/master-key.ts'
import { openS3JobContents } from '../blobs/s3/s3-job-contents.ts'
import type { FileBounds } from '../blobs/sealed-file.ts'
import type { Config } from '../config/load-config.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { Check } from '../domain/readiness.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { CleanupTask } from '../workers/sweeper.ts'

type Opened = { contents: JobContents; checks: Check[]; cleanupTasks: CleanupTask[]; close(): void }

/** Longer than any request may take: what is older belongs to nobody. */
const halfDoneMs = 86_400_000

/** Where content of background jobs lies, by ASSAY_BLOBS, with what is to be watched and swept there. */
export async function openJobContents(
  config: Config,
  { master, metrics, log, ...bounds }: { master: MasterKey; metrics: Metrics; log: Logger } & FileBounds,
): Promise<Opened> {
  const dataDir = resolve(config.dataDir)
  if (config.blobs.at === 'disk') {
    const contents = makeDiskJobContents({ dir: join(dataDir, 'jobs'), master, ...bounds })
    return { contents, checks: [], cleanupTasks: [], close() {} }
  }
  const observe = metrics.timer(
    'assay_s3_call_duration_seconds',
    'Calls to the content store, each attempt for itself. Outcomes: ok, missing, refused, failed, lost.',
    ['call', 'outcome'],
  )
  const store = await openS3JobContents({
    settings: { ...config.blobs, credentials: toCredentials(config) },
    ...{ master, stagingDir: join(dataDir, 'staging'), observe, log, ...bounds },
  })
  try {
    await store.requireUsable()
  } catch (error) {
    store.close()
    throw error
  }
  metrics.gauge('assay_s3_parts_waiting', 'Parts of uploads that wait for their turn to be sent.', store.countWaiting)
  const abortUploads = () => store.abortUploads(new Date(systemClock.now().getTime() - halfDoneMs))
  return {
    contents: store.contents,
    // Not vital: all but large content of background scans is served without it.
    checks: [{ name: 'content store', vital: false, findFault: store.findFault }],
    cleanupTasks: [{ name: 'uploads to the content store that nobody ended', sweep: abortUploads }],
    close: store.close,
  }
}

const toCredentials = ({ s3AccessKey, s3SecretKey }: Config) =>
  s3AccessKey === undefined || s3SecretKey === undefined
    ? undefined
    : { accessKeyId: s3AccessKey, secretAccessKey: s3SecretKey }
