import { OperatorMistake } from '../../domain/problem.ts'
import type { MasterKey } from '../master-key.ts'
import { makePersistentContents } from '../persistent-contents.ts'
import type { FileBounds } from '../sealed-file.ts'
import type { AttemptDeps } from './attempts.ts'
import { makePartBuffers } from './part-buffers.ts'
import { partBytes } from './part-upload.ts'
import { openS3Calls, type S3Settings } from './s3-calls.ts'
import { createSealedObject, reopenSealedObject } from './sealed-object.ts'
import { findStoreMistake } from './store-fault.ts'

type Deps = {
  settings: S3Settings & { prefix: string }
  master: MasterKey
  /** Of this machine: where parts are gathered, encrypted. */
  stagingDir: string
} & FileBounds &
  AttemptDeps

/** Parts that are on their way at once, from all uploads: 30 MB. */
const buffersAtOnce = 6

/** Content of background scans in a store that speaks S3: any process with the same store and the same key can scan it. */
export async function openS3JobContents({ settings, master, stagingDir, room, memory, ...deps }: Deps) {
  const calls = await openS3Calls(settings, deps)
  const buffers = makePartBuffers({ count: buffersAtOnce, bytes: partBytes })
  // Installations with keys of their own may share a bucket: none takes the content of another for abandoned.
  const prefix = `${settings.prefix}${master.id}/`
  const toName = (key: string) => `${prefix}${key}`
  const shared = { calls, master, buffers, stagingDir, room, memory }

  const contents = makePersistentContents({
    ...{ master, memory },
    storage: {
      // Not the endpoint: nodes may reach the same store by different names.
      id: `s3 ${settings.bucket}/${settings.prefix}`,
      create: (key) => createSealedObject(toName(key), shared),
      reopen: (key, bytes) => reopenSealedObject(toName(key), bytes, shared),
      remove: (key) => calls.remove(toName(key), 'careful'),
      async syncNames() {},
      async listKeys(before) {
        const keys: string[] = []
        for await (const { key: name, at } of calls.listObjects(prefix)) {
          const key = name.slice(prefix.length)
          if (isKey.test(key) && at < before) keys.push(key)
        }
        return keys
      },
    },
  })

  return {
    contents,
    /** Ends uploads that were begun before that time: whoever began them is gone. Says how many. */
    async abortUploads(before: Date): Promise<number> {
      let aborted = 0
      for await (const { upload, at } of calls.listUploads(prefix)) {
        if (at >= before) continue
        await calls.abortUpload(upload, 'careful')
        aborted++
      }
      return aborted
    },
    /** A sentence that strangers may read, or undefined when all is well. */
    async findFault(): Promise<string | undefined> {
      const error = await calls.check(prefix).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error === undefined) return undefined
      const why = findStoreMistake(error, settings) === undefined ? 'does not answer' : 'refuses us'
      return `The content store ${why}: submissions of more than 64 KB are answered with 503, and such scans wait.`
    },
    /** Throws when the store says no. One that does not answer may do so later, and the rest can be served meanwhile. */
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

/** What else lies there is not ours. */
const isKey = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
