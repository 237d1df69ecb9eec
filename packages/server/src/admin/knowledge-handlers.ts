import type { HashListRow, RevisionRow } from '@assay/contract/admin'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { HashList, HashListStore } from '../domain/ports/hash-list-store.ts'
import type { Revision, RevisionStore } from '../domain/ports/revision-store.ts'
import type { Source, SourceStore } from '../domain/ports/source-store.ts'
import { Problem } from '../domain/problem.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { getAccountId, type Handlers, listPage, requireFound } from './call.ts'

export type KnowledgeHandlerDeps = {
  hashLists: HashListStore
  revisions: RevisionStore
  accounts: AccountStore
  policy: AddressPolicy
}

/** Handlers for lists of known hashes, and for revisions of results. */
export function makeKnowledgeHandlers({ hashLists, revisions, accounts, policy }: KnowledgeHandlerDeps) {
  const list = (query: { cursor?: string; limit?: string }, accountId: string | undefined) =>
    listPage(
      query,
      ({ cursor, limit }) => revisions.listRevisions({ accountId, before: cursor, limit }),
      toRevisionRow,
      isRevisionId,
    )

  return {
    listHashLists: async () => (await hashLists.listActive()).map(toListRow),

    async removeHashList({ params: { name = '' }, audit }) {
      requireFound(await hashLists.remove('import', name), 'list')
      await audit('hashes.remove', name)
    },

    listRevisions: (call) => list(call.query, undefined),
    listAccountRevisions: (call) => list(call.query, getAccountId(call)),

    getRevisionWebhook: async (call) => ({
      url: requireFound(await accounts.findAccount(getAccountId(call)), 'account').revisionUrl,
    }),

    async setRevisionWebhook(call) {
      const { url } = call.body
      const errors = url === null ? [] : checkWebAddress(url, policy)
      if (errors.length > 0) throw new Problem({ kind: 'validation', errors: { url: errors } })
      const account = requireFound(await accounts.updateAccount(getAccountId(call), { revisionUrl: url }), 'account')
      await call.audit('account.revision-webhook', undefined, { detail: url === null ? 'none' : hideCredentials(url) })
      return { url: account.revisionUrl }
    },
  } satisfies Partial<Handlers>
}

/** The ids of revisions are positive numbers of 64 bits. */
const isRevisionId = (text: string) => /^[1-9]\d{0,17}$/.test(text)

const toListRow = (list: HashList): HashListRow => ({
  name: list.name,
  verdict: list.verdict,
  origin: list.origin,
  hashes: list.hashes,
  imported_by: list.createdBy,
  imported_at: list.activatedAt.toISOString(),
})

const toRevisionRow = (revision: Revision): RevisionRow => ({
  id: revision.id,
  at: revision.at.toISOString(),
  scan_id: revision.scanId,
  account_name: revision.accountName,
  content_name: revision.contentName,
  sha256: revision.sha256,
  previous_status: revision.previousStatus,
  status: revision.status,
  reason: revision.reason,
})

/** Handlers for sources of signatures. */
export function makeSourceHandlers({ sources }: { sources: Pick<SourceStore, 'listSources' | 'makeDue'> }) {
  return {
    listSources: async () => (await sources.listSources()).map(toSourceView),
    async updateSource(call) {
      const { name = '' } = call.params
      requireFound(await sources.makeDue(name), 'source')
      await call.audit('sources.update', name)
    },
  } satisfies Partial<Handlers>
}

const toSourceView = (source: Source) => ({
  name: source.name,
  url: hideCredentials(source.url),
  publisher: source.publisher,
  licence: source.licence,
  hours: source.everyHours,
  signatures: source.signatures,
  checked_at: source.checkedAt?.toISOString() ?? null,
  changed_at: source.changedAt?.toISOString() ?? null,
  attempted_at: source.attemptedAt?.toISOString() ?? null,
  error: source.error,
  held: source.held,
  refused: source.refused,
})
