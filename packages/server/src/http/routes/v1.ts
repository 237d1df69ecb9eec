import { type Operation, operations } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import type { Admission } from '../../domain/accounts/admission.ts'
import type { AccountStore } from '../../domain/ports/account-store.ts'
import type { ContentStore, JobContents } from '../../domain/ports/content-store.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import type { Submitting } from '../../domain/scans/submitting.ts'
import type { AddressPolicy } from '../../domain/scans/web-address.ts'
import { countFailures, makeAdmitHook } from '../hooks/admit.ts'
import { makeAccountHandler } from './account.ts'
import type { Handler } from './handler.ts'
import { makeResultHandler } from './scan-result.ts'
import { makeFileHandler, makeUrlHandler } from './scans.ts'

export type V1Deps = {
  admission: Admission
  accounts: AccountStore
  scanning: Scanning
  submitting: Submitting
  contents: ContentStore
  jobContents: JobContents
  policy: AddressPolicy
  /** Aborted when we stop: who waits for a result is told how it stands, and asks again elsewhere. */
  draining: AbortSignal
}

/** Every operation of the contract behind the same gate. */
export function registerV1(app: FastifyInstance, deps: V1Deps) {
  app.decorateRequest('caller', undefined)
  app.decorateRequest('isCounted', true)
  // Handlers read bodies themselves, streaming; nothing is parsed before them.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  countFailures(app, deps)
  for (const operation of operations) {
    app.route({
      method: operation.method,
      url: operation.path.replace('{id}', ':id'),
      onRequest: makeAdmitHook(operation, deps),
      handler: makeHandler(operation, deps),
    })
  }
}

function makeHandler(operation: Operation, deps: V1Deps): Handler {
  switch (operation.does) {
    case 'ping':
      return (_request, reply) => reply.send()
    case 'account':
      return makeAccountHandler(deps)
    case 'result':
      return makeResultHandler(operation, deps)
    case 'file':
      return makeFileHandler(operation, deps)
    case 'url':
      return makeUrlHandler(operation, deps)
  }
}
