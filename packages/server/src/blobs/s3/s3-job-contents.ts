import { randomBytes, randomUUID } from 'node:crypto'
import { OperatorMistake } from '../../domain/problem.ts'
import type { DigestThreads } from '../../runtime/digest-threads.ts'
import { makeLogger } from '../../runtime/logger.ts'
import { makeJobContents } from '../job-contents.ts'
import type { MasterKey } from '../master-key.ts'
import type { FileBounds } from '../sealed-file.ts'
import { type AttemptDeps, findStoreMistake } from './attempts.ts'
import { openS3Calls, type S3Settings } from './s3-calls.ts'
import { createSealedObject, makePartBuffers, partBytes, reopenSealedObject } from './sealed-object.ts'

type Deps = {
  settings: S3Settings & { prefix: string }
  master: MasterKey
  /** Identifies the installation, so that installations share a bucket without sweeping each other's content. */
  installationId: string
  /** A directory of this machine, where encrypted parts are gathered. */
  stagingDir: string
  threads?: DigestThreads
} & FileBounds &
  AttemptDeps

/** Parts that all uploads together send at once: 30 MB. */
const buffersAtOnce = 6

/**
 * Content of background jobs in a store that speaks S3: every process with the same store and master key can scan it.
 */
export async function openS3JobContents({ settings, master, installationId, stagingDir, disk, memory, ...deps }: Deps) {
  const { threads } = deps
  const calls = await openS3Calls(settings, deps)
  const buffers = makePartBuffers({ count: buffersAtOnce, bytes: partBytes })
  const prefix = `${settings.prefix}${installationId}/`
  const toName = (key: string) => `${prefix}${key}`
  const shared = { calls, buffers, stagingDir, disk, memory }

  const contents = makeJobContents({
    master,
    memory,
    threads,
    storage: {
      // Without the endpoint, because nodes may reach the same store by different names.
      id: `s3 ${settings.bucket}/${settings.prefix}`,
      create: (key, contentKey) => createSealedObject(toName(key), contentKey, shared),
      reopen: (key, contentKey, bytes) => reopenSealedObject(toName(key), contentKey, { calls, bytes }),
      remove: (key) => calls.remove(toName(key), 'careful'),
      async syncNames() {},
      async listKeys(minAgeMs) {
        const keys: string[] = []
        for await (const { key: name, ageMs } of calls.listObjects(prefix)) {
          const key = name.slice(prefix.length)
          if (isKey.test(key) && ageMs > minAgeMs) keys.push(key)
        }
        return keys
      },
    },
  })

  return {
    contents,
    /** Aborts uploads of that age, whose process must be gone, and returns their number. */
    async abortUploads(minAgeMs: number): Promise<number> {
      let aborted = 0
      for await (const { upload, ageMs } of calls.listUploads(prefix)) {
        if (ageMs <= minAgeMs) continue
        await calls.abortUpload(upload, 'careful')
        aborted++
      }
      return aborted
    },
    /** A sentence for the public readiness page, or undefined when the store works. */
    async findFault(): Promise<string | undefined> {
      try {
        await calls.check(prefix)
        return undefined
      } catch (error) {
        const fault = findStoreMistake(error, settings) === undefined ? 'does not answer' : 'refuses access'
        return `The content store ${fault}: submissions of more than 64 KB are answered with 503, and such scans wait.`
      }
    },
    /** Throws when the store refuses access. A store that does not answer may do so later, while the rest is served. */
    async requireUsable(): Promise<void> {
      try {
        await calls.check(prefix)
      } catch (error) {
        const mistake = findStoreMistake(error, settings)
        if (mistake !== undefined) throw new OperatorMistake(mistake, { cause: error })
      }
    },
    countWaiting: buffers.countWaiting,
    close: calls.close,
  }
}

/** Objects with other names do not belong to Assay. */
const isKey = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

type Step = {
  /** The right that a store must grant for the step, as AWS names it. */
  right: string
  run(): Promise<unknown>
}

/**
 * Makes every call that Assay needs of the store, each once, with objects of a few bytes that it removes again. Returns
 * a sentence for each call that failed.
 */
export async function checkStore(settings: S3Settings & { prefix: string }): Promise<string[]> {
  // Without pauses nothing is repeated: the operator waits, and repeats the check.
  const log = makeLogger({ level: 'silent', region: settings.region })
  const calls = await openS3Calls(settings, { observe: () => {}, log, pausesMs: [] })
  const name = `${settings.prefix}doctor-${randomUUID()}`
  const bytes = randomBytes(1000)
  const signal = AbortSignal.timeout(60_000)
  const small = `${name}-small`
  const large = `${name}-large`
  // The objects and uploads that the steps have begun and not ended.
  const keys = new Set<string>()
  const uploads = new Set<Awaited<ReturnType<typeof calls.startUpload>>>()

  const readBack = async (key: string) => {
    const into = Buffer.alloc(bytes.length)
    const filled = await calls.get(key, 0, into, signal)
    if (filled !== bytes.length || !into.equals(bytes))
      throw new Error('the store returned other bytes than it was sent')
  }
  const upload = async (key: string) => {
    const started = await calls.startUpload(key)
    uploads.add(started)
    return { started, part: await calls.putPart(started, 1, bytes, signal) }
  }
  const steps: Step[] = [
    { right: 's3:ListBucket', run: () => calls.check(settings.prefix) },
    {
      right: 's3:PutObject',
      run() {
        keys.add(small)
        return calls.put(small, bytes, signal)
      },
    },
    { right: 's3:GetObject', run: () => readBack(small) },
    {
      right: 's3:PutObject, for uploads in parts',
      async run() {
        const { started, part } = await upload(large)
        keys.add(large)
        await calls.completeUpload(started, [part], bytes.length)
        uploads.delete(started)
        await readBack(large)
      },
    },
    {
      right: 's3:AbortMultipartUpload',
      async run() {
        const { started } = await upload(`${name}-aborted`)
        await calls.abortUpload(started, 'careful')
        uploads.delete(started)
      },
    },
    {
      right: 's3:ListBucketMultipartUploads',
      async run() {
        for await (const _ of calls.listUploads(name)) break
      },
    },
    {
      right: 's3:DeleteObject',
      async run() {
        for (const key of [small, large]) await calls.remove(key, 'careful')
        keys.clear()
      },
    },
  ]
  try {
    const faults: string[] = []
    for (const { right, run } of steps) {
      try {
        await run()
      } catch (error) {
        const mistake = findStoreMistake(error, settings)
        // Without access to the bucket, every other call fails for the same reason.
        if (mistake !== undefined && faults.length === 0 && !isDenied(error)) return [mistake]
        faults.push(`${right} does not work: ${(error as Error).message}.`)
      }
    }
    return faults
  } finally {
    // The faults tell calls that do not work; there is nothing to add when they fail here too.
    await Promise.allSettled([
      ...[...keys].map((key) => calls.remove(key, 'hasty')),
      ...[...uploads].map((upload) => calls.abortUpload(upload, 'hasty')),
    ])
    calls.close()
  }
}

const isDenied = (error: unknown) => ((error as Error).cause as Error | undefined)?.name === 'AccessDenied'
