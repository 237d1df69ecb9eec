import { randomBytes, randomUUID } from 'node:crypto'
import { makeLogger } from '../../runtime/logger.ts'
import { findStoreMistake } from './attempts.ts'
import { openS3Calls, type S3Settings } from './s3-calls.ts'

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
