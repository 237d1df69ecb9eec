import { headers, maxContentBytes, maxWaitSeconds, type ScanKind, type ScanMode } from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admitted } from '../domain/accounts/admission.ts'
import type { Content } from '../domain/content/content.ts'
import type { ContentStore, JobContent } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Receipts } from '../domain/receipts.ts'
import {
  checkFileSubmission,
  checkUrlSubmission,
  findText,
  requireValid,
  toContentName,
} from '../domain/scans/check-submission.ts'
import { toScanResult } from '../domain/scans/scan.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import type { Submitting } from '../domain/scans/submitting.ts'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { applyAdmission, checkIdempotency, findIdempotency, getCaller } from './admission.ts'
import { readJsonBody } from './body.ts'
import { abortWhenClientLeaves } from './request.ts'
import { type Contents, readUpload } from './upload.ts'

/** Reads the request, calls one function of the domain, converts its result, replies. */
export type Handler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<unknown>
/** A handler that reads the body of its request, and returns what is to be sent. */
type BodyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

type Target = { kind: ScanKind; mode: ScanMode }
/** `C` is the content of submissions, as the writers of `jobContents` give it. */
export type ScanDeps<C extends Content = JobContent> = {
  scanning: Scanning
  submitting: Submitting<C>
  policy: AddressPolicy
  contents: ContentStore
  jobContents: Contents<C>
}

/** Handles uploads: `scan` responds with the result, `submit` with the identifier of a new job. */
export function makeFileHandler<C extends Content>(target: Target, deps: ScanDeps<C>): BodyHandler {
  const { kind, mode } = target
  if (mode === 'sync') {
    return makeUploadHandler(target, deps, deps.contents, async (request, reply, content, { contentName }) => {
      const idempotency = findIdempotency(request, [content.sha256, contentName])
      const scanRequest = {
        kind,
        address: request.ip,
        contentName,
        idempotency,
        countsRequest: !request.isCounted,
        abortWhenClientLeaves: () => abortWhenClientLeaves(reply),
      }
      const { scan, ...admitted } = await deps.scanning.scanNow(getCaller(request), content, scanRequest)
      applyAdmission(request, reply, admitted)
      reply.code(201)
      return toScanResult(scan)
    })
  }
  return makeUploadHandler(target, deps, deps.jobContents, async (request, reply, content, fields) => {
    const idempotency = findIdempotency(request, [content.sha256, fields.contentName, fields.callbackUrl])
    const scanRequest = { kind, address: request.ip, ...fields, idempotency, countsRequest: !request.isCounted }
    return sendReceipt(request, reply, await deps.submitting.submitFile(getCaller(request), content, scanRequest))
  })
}

/** Handles URL commands: `scan` responds with the result, `submit` with the identifier of a new job. */
export function makeUrlHandler<C extends Content>({ kind, mode }: Target, deps: ScanDeps<C>): BodyHandler {
  return async (request, reply) => {
    const fields = await readJsonBody(request, reply)
    requireValid({ ...checkUrlSubmission({ kind, mode }, fields, deps.policy), ...checkIdempotency(request) })
    const [url, contentName] = [findText(fields.file_url) ?? '', findText(fields.file_name)]
    const callbackUrl = mode === 'sync' ? null : findText(fields.callback_url)
    const idempotency = findIdempotency(request, [url, contentName, callbackUrl])
    const address = request.ip
    if (mode === 'async') {
      const scanRequest = { kind, address, contentName, callbackUrl, idempotency, countsRequest: false }
      return sendReceipt(request, reply, await deps.submitting.submitUrl(getCaller(request), url, scanRequest))
    }
    const scanRequest = { kind, address, contentName, idempotency, countsRequest: false }
    const { scan, ...admitted } = await deps.scanning.scanUrlNow(
      getCaller(request),
      url,
      scanRequest,
      abortWhenClientLeaves(reply),
    )
    applyAdmission(request, reply, admitted)
    reply.code(201)
    return toScanResult(scan)
  }
}

type FormFields = { contentName: string | null; callbackUrl: string | null }

/** Reads the form, rejects it with all of its errors at once, and releases the content at the end. */
function makeUploadHandler<C extends Content>(
  target: Target,
  deps: Pick<ScanDeps, 'policy'>,
  contents: Contents<C>,
  use: (request: FastifyRequest, reply: FastifyReply, content: C, fields: FormFields) => Promise<unknown>,
): BodyHandler {
  const { kind, mode } = target
  const maxBytes = maxContentBytes[kind][mode]
  return async (request, reply) => {
    const { accountId } = getCaller(request)
    const upload = await readUpload(request, reply, { contents, kind, maxBytes, accountId })
    const content = 'content' in upload.file ? upload.file.content : undefined
    try {
      requireValid({ ...checkFileSubmission(target, upload, deps.policy), ...checkIdempotency(request) })
      // A form without content has an error, so `content` is defined here.
      const fields = { contentName: toContentName(upload), callbackUrl: findText(upload.fields.callback_url) }
      return await use(request, reply, content as C, fields)
    } finally {
      await content?.release()
    }
  }
}

function sendReceipt(request: FastifyRequest, reply: FastifyReply, submitted: Admitted & { scanId: string }) {
  applyAdmission(request, reply, submitted)
  reply.code(202).header(headers.result, submitted.scanId)
  return { id: submitted.scanId }
}

/**
 * Handles result queries. A completed result changes only by a revision, so it carries an ETag and may be cached. A
 * pending one and one with a receipt, which has the time of its signature, must not be cached.
 */
export function makeResultHandler(
  target: { kind: ScanKind },
  deps: { scanning: Pick<Scanning, 'getScan'>; receipts: Pick<Receipts, 'getScan'>; draining: AbortSignal },
): Handler {
  return async (request, reply) => {
    const { id } = request.params as { id: string }
    const waitMs = readWait(request) * 1000
    const wantsReceipt = readReceipt(request)
    const options = {
      waitMs,
      ...(waitMs > 0 ? { signal: AbortSignal.any([abortWhenClientLeaves(reply), deps.draining]) } : {}),
    }
    const { getScan } = wantsReceipt ? deps.receipts : deps.scanning
    const scan = await getScan(getCaller(request), target.kind, id, options)
    if (scan.status === 'pending' || wantsReceipt) {
      reply.header('Cache-Control', 'no-store')
      return toScanResult(scan)
    }
    const revisedAt = scan.metadata?.revised_at
    const tag = revisedAt === undefined ? `"${scan.id}"` : `"${scan.id}.${revisedAt}"`
    reply.header('Cache-Control', 'private').header('ETag', tag)
    return hasCurrentTag(request, tag) ? reply.code(304).send() : toScanResult(scan)
  }
}

/** Reads the `wait` parameter of the query, such as `?wait=10`, in seconds. */
export function readWait(request: FastifyRequest): number {
  const { wait } = request.query as { wait?: unknown }
  if (wait === undefined) return 0
  const seconds = Number(wait)
  if (typeof wait === 'string' && /^\d{1,2}$/.test(wait) && seconds <= maxWaitSeconds) return seconds
  const error = `wait must be a whole number of seconds from 0 to ${maxWaitSeconds}.`
  throw new Problem({ kind: 'validation', errors: { wait: [error] } })
}

/** Reads the `receipt` parameter of the query: `?receipt=1` asks for a signed receipt of the result. */
function readReceipt(request: FastifyRequest): boolean {
  const { receipt } = request.query as { receipt?: unknown }
  if (receipt === undefined || receipt === '1') return receipt === '1'
  throw new Problem({ kind: 'validation', errors: { receipt: ['receipt must be 1, or be left out.'] } })
}

const hasCurrentTag = ({ headers }: FastifyRequest, tag: string): boolean =>
  (headers['if-none-match'] ?? '').split(',').some((candidate) => [tag, `W/${tag}`, '*'].includes(candidate.trim()))
