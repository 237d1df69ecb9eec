import { headers, maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admitted } from '../../domain/accounts/admission.ts'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore, JobContents } from '../../domain/ports/content-store.ts'
import { type FieldErrors, Problem } from '../../domain/problem.ts'
import {
  checkFileSubmission,
  checkUrlSubmission,
  findText,
  toContentName,
} from '../../domain/scans/check-submission.ts'
import { toScanResult } from '../../domain/scans/scan.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import type { Submitting } from '../../domain/scans/submitting.ts'
import type { AddressPolicy } from '../../domain/scans/web-address.ts'
import { abortWhenClientLeaves } from '../client-abort.ts'
import { applyAdmission, getCaller } from '../hooks/admit.ts'
import { checkIdempotency, findIdempotency } from '../idempotency.ts'
import { readJsonBody } from '../json-body.ts'
import { requireMediaType } from '../media-type.ts'
import { type Contents, readUpload } from '../upload.ts'
import type { Handler } from './handler.ts'

type Target = { kind: ScanKind; mode: ScanMode }
export type ScanDeps = {
  scanning: Scanning
  submitting: Submitting
  policy: AddressPolicy
  contents: ContentStore
  jobContents: JobContents
}

/** `scan` waits for the verdict, `submit` gives out the number of a job. */
export function makeFileHandler(target: Target, deps: ScanDeps): Handler {
  const { kind, mode } = target
  if (mode === 'sync') {
    const contents = kind === 'nsfw_image' ? withPictureMemory(deps.contents) : deps.contents
    return makeUploadHandler(target, deps, contents, async (request, reply, content, { contentName }) => {
      const idempotency = findIdempotency(request, [content.sha256, contentName])
      const leaving = { abortWhenClientLeaves: () => abortWhenClientLeaves(reply) }
      const order = { kind, contentName, idempotency, countsRequest: !request.isCounted, ...leaving }
      const { scan, ...admitted } = await deps.scanning.scanNow(getCaller(request), content, order)
      applyAdmission(request, reply, admitted)
      reply.code(201)
      return toScanResult(scan)
    })
  }
  return makeUploadHandler(target, deps, deps.jobContents, async (request, reply, content, given) => {
    const idempotency = findIdempotency(request, [content.sha256, given.contentName, given.callbackUrl])
    const order = { kind, ...given, idempotency, countsRequest: !request.isCounted }
    return sendReceipt(request, reply, await deps.submitting.submitFile(getCaller(request), content, order))
  })
}

export function makeUrlHandler({ kind, mode }: Target, deps: ScanDeps): Handler {
  return async (request, reply) => {
    requireMediaType(request, 'application/json')
    const fields = await readJsonBody(request, reply)
    requireNone({ ...checkUrlSubmission({ kind, mode }, fields, deps.policy), ...checkIdempotency(request) })
    const [url, contentName] = [findText(fields.file_url) ?? '', findText(fields.file_name)]
    const callbackUrl = mode === 'sync' ? null : findText(fields.callback_url)
    const idempotency = findIdempotency(request, [url, contentName, callbackUrl])
    if (mode === 'async') {
      const order = { kind, contentName, callbackUrl, idempotency, countsRequest: false }
      return sendReceipt(request, reply, await deps.submitting.submitUrl(getCaller(request), url, order))
    }
    const order = { kind, contentName, idempotency, countsRequest: false }
    const { scan, ...admitted } = await deps.scanning.scanUrlNow(
      getCaller(request),
      url,
      order,
      abortWhenClientLeaves(reply),
    )
    applyAdmission(request, reply, admitted)
    reply.code(201)
    return toScanResult(scan)
  }
}

/** A picture is decoded in a moment: a file in between took 16 of the 27 ms that one of 1.7 MB cost the service. */
const pictureMemoryBytes = 4 * 1024 * 1024

const withPictureMemory = ({ newWriter }: ContentStore): ContentStore => ({
  newWriter: (options) => newWriter({ ...options, memoryBytes: pictureMemoryBytes }),
})

type Given = { contentName: string | null; callbackUrl: string | null }

/** Reads the form, tells everything that is wrong with it, and lets go of the content in the end. */
function makeUploadHandler<C extends Content>(
  target: Target,
  deps: ScanDeps,
  contents: Contents<C>,
  use: (request: FastifyRequest, reply: FastifyReply, content: C, given: Given) => Promise<unknown>,
): Handler {
  const maxBytes = maxContentBytes[target.kind][target.mode]
  return async (request, reply) => {
    const upload = await readUpload(request, reply, { contents, maxBytes })
    const content = 'content' in upload.file ? upload.file.content : undefined
    try {
      requireNone({ ...checkFileSubmission(target, upload, deps.policy), ...checkIdempotency(request) })
      // Without content there was an error.
      const given = { contentName: toContentName(upload), callbackUrl: findText(upload.fields.callback_url) }
      return await use(request, reply, content as C, given)
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

function requireNone(errors: FieldErrors) {
  if (Object.keys(errors).length > 0) throw new Problem({ kind: 'validation', errors })
}
