import { OperatorMistake } from '../../domain/problem.ts'
import type { DigestThreads } from '../../runtime/digest-threads.ts'
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
