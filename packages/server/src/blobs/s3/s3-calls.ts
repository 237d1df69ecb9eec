import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent as HttpsAgent } from 'node:https'
import { addAbortSignal, type Readable } from 'node:stream'
import type { S3 } from '@aws-sdk/client-s3'
import { OperatorMistake } from '../../domain/problem.ts'
import { Agent as HttpAgent } from '../../runtime/node-http.ts'
import { type AttemptDeps, type AttemptOptions, makeAttempts } from './attempts.ts'

export type S3Settings = {
  bucket: string
  /** Undefined for Amazon's own endpoint. */
  endpoint: string | undefined
  region: string
  pathStyle: boolean
  /** Encryption that the store adds to that of Assay; undefined for its default. */
  encryption?: S3Encryption | undefined
  /** PEM file with the certificates that the endpoint is trusted by, instead of the authorities of the machine. */
  caFile?: string | undefined
  /** When undefined, the SDK looks in the environment, the profile and the instance. */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined
}

type S3Encryption = {
  algorithm: 'AES256' | 'aws:kms' | 'aws:kms:dsse'
  /** Undefined for the default key of the store. */
  kmsKey: string | undefined
}

type Upload = { Key: string; UploadId: string }
export type Part = { PartNumber: number; ETag: string | undefined }

/** A connection on which no byte arrives for this long counts as lost. */
const silenceMs = 15_000
const callMs = 30_000
/** Time for a part of 5 MB, at no less than 50 KB/s. */
const bodyMs = 100_000
const checkMs = 2500
/** The sweeper runs every minute, and first at the start, which should not wait for a store that is unavailable. */
const sweepOptions = { attemptMs: callMs, once: true } as const
/** `hasty` while a caller waits for something else: the sweeper removes what remains. */
type Care = 'careful' | 'hasty'
const attemptsByCare: Record<Care, AttemptOptions> = {
  careful: { attemptMs: callMs },
  hasty: { attemptMs: 5000, once: true },
}
const maxSockets = 64

type Context = {
  s3: S3
  Bucket: string
  /** Parameters of the calls that create an object. */
  encryption: { ServerSideEncryption?: S3Encryption['algorithm']; SSEKMSKeyId?: string }
  attempt: ReturnType<typeof makeAttempts>
  /** Time since a moment that the store dated. */
  findAgeMs(since: Date): number
}

/** The calls to the store that Assay makes. They also tell which permissions its credentials need. */
export async function openS3Calls(settings: S3Settings, deps: AttemptDeps) {
  const s3 = await openClient(settings)
  const context = {
    s3,
    Bucket: settings.bucket,
    encryption: toParameters(settings.encryption),
    attempt: makeAttempts(deps),
    findAgeMs: watchStoreClock(s3),
  }
  return {
    ...makeObjectCalls(context),
    ...makeUploadCalls(context),
    ...makeListCalls(context),
    close: () => s3.destroy(),
  }
}

export type S3Calls = Awaited<ReturnType<typeof openS3Calls>>

function toParameters(encryption: S3Encryption | undefined): Context['encryption'] {
  if (encryption === undefined) return {}
  const { algorithm, kmsKey } = encryption
  return { ServerSideEncryption: algorithm, ...(kmsKey === undefined ? {} : { SSEKMSKeyId: kmsKey }) }
}

/** Loads the SDK only here, so that installations without S3 do not pay for it. */
async function openClient({ endpoint, region, credentials, pathStyle, caFile }: S3Settings): Promise<S3> {
  const sdk = await import('@aws-sdk/client-s3')
  const options = { keepAlive: true, maxSockets }
  const ca = caFile === undefined ? {} : { ca: await readCertificates(caFile) }
  // Agents instead of their options: for large bodies the SDK would make an agent of its own without these options.
  const agents = { httpAgent: new HttpAgent(options), httpsAgent: new HttpsAgent({ ...options, ...ca }) }
  return new sdk.S3({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    region,
    forcePathStyle: pathStyle,
    // attempts.ts repeats calls, not the SDK.
    maxAttempts: 1,
    // Many stores do not know the newer checksums. The frames are authenticated, and the signature covers the body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: 5000, socketTimeout: silenceMs, ...agents },
  })
}

async function readCertificates(file: string): Promise<string> {
  try {
    const pem = await readFile(file, 'utf8')
    new X509Certificate(pem)
    return pem
  } catch (error) {
    const { message } = error as Error
    throw new OperatorMistake(`The file ${file} of ca in ASSAY_BLOBS cannot be used: ${message}`, { cause: error })
  }
}

/** Reads the time of the store from its responses: the ages of objects must not depend on the clock of this machine. */
function watchStoreClock(s3: S3): (since: Date) => number {
  let offsetMs = 0
  s3.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args)
      const { headers } = result.response as { headers?: Record<string, string> }
      const dateMs = Date.parse(headers?.date ?? '')
      if (!Number.isNaN(dateMs)) offsetMs = dateMs - performance.now()
      return result
    },
    { step: 'deserialize', name: 'watchStoreClock', override: true },
  )
  return (since) => performance.now() + offsetMs - since.getTime()
}

function makeObjectCalls({ s3, Bucket, encryption, attempt }: Context) {
  return {
    async put(Key: string, Body: Buffer, signal: AbortSignal): Promise<void> {
      const run = (abortSignal: AbortSignal) => s3.putObject({ Bucket, Key, Body, ...encryption }, { abortSignal })
      await attempt('PutObject', run, { attemptMs: bodyMs, signal })
    },

    /**
     * Fills `into` from the offset on and returns the number of bytes. A broken transfer continues where it stopped.
     */
    async get(Key: string, offset: number, into: Buffer, signal: AbortSignal): Promise<number> {
      let filled = 0
      const getMore = async (abortSignal: AbortSignal) => {
        const Range = `bytes=${offset + filled}-${offset + into.length - 1}`
        const { Body, ContentLength = 0 } = await s3.getObject({ Bucket, Key, Range }, { abortSignal })
        const end = filled + ContentLength
        for await (const chunk of addAbortSignal(abortSignal, Body as Readable)) {
          if (filled + chunk.length > into.length) throw new Error('The content store sent more than was requested')
          filled += chunk.copy(into, filled)
        }
        if (filled !== end) throw new Error('The content store sent less than it announced')
      }
      await attempt('GetObject', getMore, { attemptMs: bodyMs, signal })
      return filled
    },

    /** Succeeds also when the object does not exist any more. */
    async remove(Key: string, care: Care): Promise<void> {
      const run = (abortSignal: AbortSignal) => s3.deleteObject({ Bucket, Key }, { abortSignal })
      await attempt('DeleteObject', run, attemptsByCare[care]).catch(ignoreMissing)
    },

    /** Throws when the bucket cannot be used. */
    async check(Prefix: string): Promise<void> {
      const page = { Bucket, Prefix, MaxKeys: 1 }
      const run = (abortSignal: AbortSignal) => s3.listObjectsV2(page, { abortSignal })
      await attempt('Check', run, { attemptMs: checkMs, once: true })
    },
  }
}

function makeUploadCalls({ s3, Bucket, encryption, attempt }: Context) {
  return {
    async startUpload(Key: string): Promise<Upload> {
      const object = { Bucket, Key, ...encryption }
      const run = (abortSignal: AbortSignal) => s3.createMultipartUpload(object, { abortSignal })
      const { UploadId } = await attempt('CreateMultipartUpload', run, { attemptMs: callMs })
      if (UploadId === undefined) throw new Error('The content store started an upload without an id')
      return { Key, UploadId }
    },

    async putPart(upload: Upload, PartNumber: number, Body: Buffer, signal: AbortSignal): Promise<Part> {
      const part = { Bucket, ...upload, PartNumber, Body }
      const run = (abortSignal: AbortSignal) => s3.uploadPart(part, { abortSignal })
      const { ETag } = await attempt('UploadPart', run, { attemptMs: bodyMs, signal })
      return { PartNumber, ETag }
    },

    async completeUpload(upload: Upload, Parts: Part[], bytes: number): Promise<void> {
      const whole = { Bucket, ...upload, MultipartUpload: { Parts } }
      const complete = (abortSignal: AbortSignal) => s3.completeMultipartUpload(whole, { abortSignal })
      const head = (abortSignal: AbortSignal) => s3.headObject({ Bucket, Key: upload.Key }, { abortSignal })
      try {
        await attempt('CompleteMultipartUpload', complete, { attemptMs: bodyMs })
      } catch (error) {
        // When the answer to a successful attempt is lost, the upload does not exist any more, but the object does.
        if ((error as Error).name !== 'NoSuchUpload') throw error
        const { ContentLength } = await attempt('HeadObject', head, { attemptMs: callMs })
        if (ContentLength !== bytes) throw error
      }
    },

    /** Succeeds also when the upload does not exist any more. */
    async abortUpload(upload: Upload, care: Care): Promise<void> {
      const run = (abortSignal: AbortSignal) => s3.abortMultipartUpload({ Bucket, ...upload }, { abortSignal })
      await attempt('AbortMultipartUpload', run, attemptsByCare[care]).catch(ignoreMissing)
    },
  }
}

function makeListCalls({ s3, Bucket, attempt, findAgeMs }: Context) {
  return {
    async *listObjects(Prefix: string) {
      for (let token: string | undefined; ; ) {
        const page = { Bucket, Prefix, ...(token === undefined ? {} : { ContinuationToken: token }) }
        const response = await attempt(
          'ListObjects',
          (abortSignal) => s3.listObjectsV2(page, { abortSignal }),
          sweepOptions,
        )
        for (const { Key, LastModified } of response.Contents ?? []) {
          if (Key !== undefined && LastModified !== undefined) yield { key: Key, ageMs: findAgeMs(LastModified) }
        }
        token = response.NextContinuationToken
        if (response.IsTruncated !== true || token === undefined) return
      }
    },

    /** Lists uploads that were neither completed nor aborted. */
    async *listUploads(Prefix: string) {
      for (let marker: { KeyMarker?: string; UploadIdMarker?: string } = {}; ; ) {
        const page = { Bucket, Prefix, ...marker }
        const run = (abortSignal: AbortSignal) => s3.listMultipartUploads(page, { abortSignal })
        const response = await attempt('ListMultipartUploads', run, sweepOptions)
        for (const { Key, UploadId, Initiated } of response.Uploads ?? []) {
          if (Key !== undefined && UploadId !== undefined && Initiated !== undefined)
            yield { upload: { Key, UploadId }, ageMs: findAgeMs(Initiated) }
        }
        const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = response
        if (response.IsTruncated !== true || !KeyMarker || !UploadIdMarker) return
        marker = { KeyMarker, UploadIdMarker }
      }
    },
  }
}

/** Calls throw the store's own error when something does not exist, and `StorageUnavailable` for everything else. */
function ignoreMissing(error: Error & { $metadata?: { httpStatusCode?: number } }) {
  if (error.$metadata?.httpStatusCode !== 404) throw error
}
