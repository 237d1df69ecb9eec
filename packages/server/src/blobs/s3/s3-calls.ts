import { addAbortSignal, type Readable } from 'node:stream'
import { type AttemptDeps, type Attempts, makeAttempts } from './attempts.ts'

export type S3Settings = {
  bucket: string
  /** Amazon's own when undefined. */
  endpoint: string | undefined
  region: string
  pathStyle: boolean
  /** Found by the SDK when undefined: environment, profile, instance. */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined
}

type Upload = { Key: string; UploadId: string }
export type Part = { PartNumber: number; ETag: string | undefined }

/** A store that says nothing for this long is taken for lost. */
const silenceMs = 15_000
const callMs = 30_000
/** 5 MB at 50 KB/s. */
const bodyMs = 100_000
const checkMs = 2500
/** Whoever sweeps comes again in a minute; and a start, which sweeps first, should not wait for a store that is away. */
const sweeping = { attemptMs: callMs, once: true } as const
/** `hasty` when somebody waits for other things: what stays behind is swept. */
type Care = 'careful' | 'hasty'
const toAttempts: Record<Care, Attempts> = { careful: { attemptMs: callMs }, hasty: { attemptMs: 5000, once: true } }
const maxSockets = 64

/** The calls that we make, and no others. The SDK is loaded here: whoever has no S3 pays nothing for it. */
export async function openS3Calls(settings: S3Settings, deps: AttemptDeps) {
  const sdk = await import('@aws-sdk/client-s3')
  const { bucket: Bucket, endpoint, region, credentials } = settings
  const agent = { keepAlive: true, maxSockets }
  const s3 = new sdk.S3({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    ...{ region, forcePathStyle: settings.pathStyle },
    // Attempts are ours; see attempts.ts.
    maxAttempts: 1,
    // Many stores do not know the newer checksums. The frames are authenticated, and the signature covers the body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: 5000, socketTimeout: silenceMs, httpAgent: agent, httpsAgent: agent },
  })
  const attempt = makeAttempts(deps)

  return {
    put: (Key: string, Body: Buffer, signal: AbortSignal) =>
      attempt('PutObject', (abortSignal) => s3.putObject({ Bucket, Key, Body }, { abortSignal }), {
        ...{ attemptMs: bodyMs, signal },
      }),

    async startUpload(Key: string): Promise<Upload> {
      const { UploadId } = await attempt(
        'CreateMultipartUpload',
        (abortSignal) => s3.createMultipartUpload({ Bucket, Key }, { abortSignal }),
        { attemptMs: callMs },
      )
      if (UploadId === undefined) throw new Error('The content store began an upload without an id')
      return { Key, UploadId }
    },

    async putPart(upload: Upload, PartNumber: number, Body: Buffer, signal: AbortSignal): Promise<Part> {
      const { ETag } = await attempt(
        'UploadPart',
        (abortSignal) => s3.uploadPart({ Bucket, ...upload, PartNumber, Body }, { abortSignal }),
        { attemptMs: bodyMs, signal },
      )
      return { PartNumber, ETag }
    },

    async completeUpload(upload: Upload, Parts: Part[], bytes: number): Promise<void> {
      try {
        await attempt(
          'CompleteMultipartUpload',
          (abortSignal) =>
            s3.completeMultipartUpload({ Bucket, ...upload, MultipartUpload: { Parts } }, { abortSignal }),
          { attemptMs: bodyMs },
        )
      } catch (error) {
        // The answer to an attempt that succeeded may have been lost: then the upload is gone, and the object is there.
        if ((error as Error).name !== 'NoSuchUpload') throw error
        const { ContentLength } = await attempt(
          'HeadObject',
          (abortSignal) => s3.headObject({ Bucket, Key: upload.Key }, { abortSignal }),
          { attemptMs: callMs },
        )
        if (ContentLength !== bytes) throw error
      }
    },

    /** May be over already. */
    async abortUpload(upload: Upload, care: Care): Promise<void> {
      await attempt(
        'AbortMultipartUpload',
        (abortSignal) => s3.abortMultipartUpload({ Bucket, ...upload }, { abortSignal }),
        toAttempts[care],
      ).catch(ignoreMissing)
    },

    /** Fills `into` from that place on, and says how much there was. A reading that breaks goes on where it stopped. */
    async get(Key: string, from: number, into: Buffer, signal: AbortSignal): Promise<number> {
      let filled = 0
      const getMore = async (abortSignal: AbortSignal) => {
        const Range = `bytes=${from + filled}-${from + into.length - 1}`
        const { Body, ContentLength = 0 } = await s3.getObject({ Bucket, Key, Range }, { abortSignal })
        const end = filled + ContentLength
        for await (const chunk of addAbortSignal(abortSignal, Body as Readable)) {
          if (filled + chunk.length > into.length) throw new Error('The content store sent more than was asked for')
          filled += chunk.copy(into, filled)
        }
        if (filled !== end) throw new Error('The content store sent less than it said')
      }
      await attempt('GetObject', getMore, { attemptMs: bodyMs, signal })
      return filled
    },

    /** May be gone already. */
    async remove(Key: string, care: Care): Promise<void> {
      await attempt(
        'DeleteObject',
        (abortSignal) => s3.deleteObject({ Bucket, Key }, { abortSignal }),
        toAttempts[care],
      ).catch(ignoreMissing)
    },

    async *listObjects(Prefix: string) {
      for (let token: string | undefined; ; ) {
        const page = { Bucket, Prefix, ...(token === undefined ? {} : { ContinuationToken: token }) }
        const found = await attempt('ListObjects', (abortSignal) => s3.listObjectsV2(page, { abortSignal }), sweeping)
        for (const { Key, LastModified } of found.Contents ?? []) {
          if (Key !== undefined && LastModified !== undefined) yield { key: Key, at: LastModified }
        }
        token = found.NextContinuationToken
        if (found.IsTruncated !== true || token === undefined) return
      }
    },

    /** Uploads that were begun and not ended. */
    async *listUploads(Prefix: string) {
      for (let marker: { KeyMarker?: string; UploadIdMarker?: string } = {}; ; ) {
        const page = { Bucket, Prefix, ...marker }
        const found = await attempt(
          'ListMultipartUploads',
          (abortSignal) => s3.listMultipartUploads(page, { abortSignal }),
          sweeping,
        )
        for (const { Key, UploadId, Initiated } of found.Uploads ?? []) {
          if (Key !== undefined && UploadId !== undefined && Initiated !== undefined)
            yield { upload: { Key, UploadId }, at: Initiated }
        }
        const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = found
        if (found.IsTruncated !== true || !KeyMarker || !UploadIdMarker) return
        marker = { KeyMarker, UploadIdMarker }
      }
    },

    /** Throws when the bucket cannot be used. */
    async check(Prefix: string): Promise<void> {
      const page = { Bucket, Prefix, MaxKeys: 1 }
      const options = { attemptMs: checkMs, once: true } as const
      await attempt('Check', (abortSignal) => s3.listObjectsV2(page, { abortSignal }), options)
    },

    close: () => s3.destroy(),
  }
}

export type S3Calls = Awaited<ReturnType<typeof openS3Calls>>

/** What the store says when something is not there comes as it is; everything else is `StorageUnavailable`. */
function ignoreMissing(error: Error & { $metadata?: { httpStatusCode?: number } }) {
  if (error.$metadata?.httpStatusCode !== 404) throw error
}
