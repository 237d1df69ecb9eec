import { execFileSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { S3 } from '@aws-sdk/client-s3'
import type { TestS3 } from '../../../../../scripts/test-s3.ts'
import type { AttemptDeps, CallOutcome } from '../../../src/blobs/s3/attempts.ts'
import { openS3JobContents } from '../../../src/blobs/s3/s3-job-contents.ts'
import { makeLogger } from '../../../src/runtime/logger.ts'
import type { Storage } from '../job-contents-contract.ts'
import { newTestDir } from '../test-dir.ts'

type Master = Parameters<Storage['open']>[0]

let prefixes = 0

/** A prefix of the test's store, with direct access to its objects. */
export function newCorner(t: TestContext, store: TestS3) {
  const prefix = `corner-${process.pid}-${prefixes++}/`
  const { endpoint, region, bucket: Bucket } = store
  const credentials = { accessKeyId: store.accessKey, secretAccessKey: store.secretKey }
  const s3 = new S3({ endpoint, region, forcePathStyle: true, credentials })
  const settings = { bucket: Bucket, prefix, endpoint, region, pathStyle: true, credentials }
  const observed: { call: string; outcome: CallOutcome }[] = []
  t.after(() => s3.destroy())

  const listNames = async () => {
    const { Contents = [] } = await s3.listObjectsV2({ Bucket, Prefix: prefix })
    return Contents.map(({ Key = '' }) => Key)
  }
  const findName = async (key: string) => (await listNames()).find((name) => name.endsWith(key))
  const read = async (key: string) => {
    const { Body } = await s3.getObject({ Bucket, Key: await findName(key) })
    return Buffer.from((await Body?.transformToByteArray()) ?? [])
  }
  const change = async (key: string, to: (bytes: Buffer) => Buffer) => {
    await s3.putObject({ Bucket, Key: await findName(key), Body: to(await read(key)) })
  }

  return {
    s3,
    settings,
    observed,
    async open(master: Master, more: { endpoint?: string; pausesMs?: AttemptDeps['pausesMs'] } = {}) {
      const opened = await openS3JobContents({
        settings: { ...settings, endpoint: more.endpoint ?? endpoint },
        master,
        installationId: 'installation',
        stagingDir: newTestDir(t),
        observe: (_seconds, call, outcome) => observed.push({ call, outcome }),
        log: makeLogger({ level: 'silent', region: 'test' }),
        pausesMs: more.pausesMs,
      })
      t.after(opened.close)
      return opened
    },
    listNames,
    async listUploads() {
      const { Uploads = [] } = await s3.listMultipartUploads({ Bucket, Prefix: prefix })
      return Uploads.map(({ Key = '' }) => Key)
    },
    findClear: async (marker: string) => grep(store.filesDir, marker),
    damage: (key: string, place: number) =>
      change(key, (bytes) => {
        bytes[place] = (bytes[place] ?? 0) ^ 1
        return bytes
      }),
    cutOff: (key: string, bytes: number) => change(key, (all) => all.subarray(0, bytes)),
    async replace(key: string, other: string) {
      const bytes = await read(other)
      await change(key, () => bytes)
    },
  }
}

/** Lists the files that contain the marker. grep exits with 1 when there is none. */
function grep(dir: string, marker: string): string[] {
  try {
    return execFileSync('grep', ['-rlaF', marker, dir], { encoding: 'utf8' }).trim().split('\n')
  } catch (error) {
    if ((error as { status?: number }).status === 1) return []
    throw error
  }
}
