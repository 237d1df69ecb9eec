import { maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import { type FieldErrors, Problem } from '../../domain/problem.ts'
import type { AddressPolicy } from '../../domain/scans/public-address.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import { checkFileSubmission, checkUrlSubmission } from '../../domain/scans/submission.ts'
import { readJsonBody } from '../json-body.ts'
import { requireMediaType } from '../media-type.ts'
import { readUpload } from '../upload.ts'
import type { Handler } from './handler.ts'

type Target = { kind: ScanKind; mode: ScanMode }
type Deps = { scanning: Scanning; policy: AddressPolicy }

export function makeFileHandler(target: Target, deps: Deps): Handler {
  return async (request, reply) => {
    const upload = await readUpload(request, reply, maxContentBytes[target.kind][target.mode])
    requireNone(checkFileSubmission(target, upload, deps.policy))
    return deps.scanning.requireEngine(target.kind)
  }
}

export function makeUrlHandler(target: Target, deps: Deps): Handler {
  return async (request, reply) => {
    requireMediaType(request, 'application/json')
    const fields = await readJsonBody(request, reply)
    requireNone(checkUrlSubmission(target, fields, deps.policy))
    return deps.scanning.requireEngine(target.kind)
  }
}

function requireNone(errors: FieldErrors) {
  if (Object.keys(errors).length > 0) throw new Problem({ kind: 'validation', errors })
}
