import { type Operation, operations } from '@assay/contract'
import { consoleScanPath } from '@assay/contract/admin'
import type { FastifyInstance } from 'fastify'
import type { Admission } from '../domain/accounts/admission.ts'
import { applyAdmission, prepareAdmission } from '../http/admission.ts'
import { makeFileHandler, makeUrlHandler, type ScanDeps } from '../http/scans.ts'
import { getAccountId } from './call.ts'
import { type GuardDeps, makeGuard } from './guard.ts'

type Deps = GuardDeps &
  ScanDeps & { admission: Admission; consoleKeys: { getDigest(accountId: string): Promise<string> } }

/** The scan page: the operations of /v1 on the same handlers, charged like any other, with the session in place of a key. */
export function registerConsoleScans(app: FastifyInstance, deps: Deps) {
  const guard = makeGuard(deps)
  prepareAdmission(app)
  for (const operation of operations) {
    const handler = findHandler(operation, deps)
    if (handler === undefined) continue
    app.route({
      method: 'POST',
      url: consoleScanPath + operation.path.slice('/v1'.length),
      onRequest: async (request, reply) => {
        request.operationId = operation.id
        const who = await guard({ access: 'account', method: 'POST' }, request)
        const digest = await deps.consoleKeys.getDigest(getAccountId({ who }))
        applyAdmission(request, reply, await deps.admission.admitDigest(digest, true))
      },
      handler,
    })
  }
}

function findHandler(operation: Operation, deps: ScanDeps) {
  if (operation.does === 'file') return makeFileHandler(operation, deps)
  return operation.does === 'url' ? makeUrlHandler(operation, deps) : undefined
}
