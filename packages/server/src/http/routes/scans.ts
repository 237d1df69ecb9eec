import { maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import { type FieldErrors, Problem } from '../../domain/problem.ts'
import type { AddressPolicy } from '../../domain/scans/public-address.ts'
import { toScanResult } from '../../domain/scans/scan-result.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import { checkFileSubmission, checkUrlSubmission, toContentName } from '../../domain/scans/submission.ts'
import { getCaller, goOn } from '../hooks/admit.ts'
import { readJsonBody } from '../json-body.ts'
import { requireMediaType } from '../media-type.ts'
import { readUpload } from '../upload.ts'
import type { Handler } from './handler.ts'

type Target = { kind: ScanKind; mode: ScanMode }
type Deps = { scanning: Scanning; policy: AddressPolicy; contents: ContentStore }

export function makeFileHandler(target: Target, deps: Deps): Handler {
  return async (request, reply) => {
    const maxBytes = maxContentBytes[target.kind][target.mode]
    const upload = await readUpload(request, reply, { contents: deps.contents, maxBytes })
    const content = 'content' in upload.file ? upload.file.content : undefined
    try {
      requireNone(checkFileSubmission(target, upload, deps.policy))
      if (content === undefined || target.kind !== 'malware' || target.mode !== 'sync') return refuse(target, deps)
      const { scan, ...admitted } = await deps.scanning.scanNow(getCaller(request), content, {
        contentName: toContentName(upload),
        takesRequest: !request.isCounted,
      })
      goOn(request, reply, admitted)
      reply.code(201)
      return toScanResult(scan)
    } finally {
      await content?.release()
    }
  }
}

export function makeUrlHandler(target: Target, deps: Deps): Handler {
  return async (request, reply) => {
    requireMediaType(request, 'application/json')
    const fields = await readJsonBody(request, reply)
    requireNone(checkUrlSubmission(target, fields, deps.policy))
    return refuse(target, deps)
  }
}

const refuse = ({ kind, mode }: Target, deps: Deps) => deps.scanning.refuse(kind, mode)

function requireNone(errors: FieldErrors) {
  if (Object.keys(errors).length > 0) throw new Problem({ kind: 'validation', errors })
}
