import type { HashListRow, RevisionRow, Status } from '@assay/contract/admin'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { HashList, HashListStore } from '../domain/ports/hash-list-store.ts'
import type { AuditLog, AuditRecord } from '../domain/ports/operations.ts'
import type { Revision, RevisionStore } from '../domain/ports/revision-store.ts'
import type { Source, SourceStore } from '../domain/ports/source-store.ts'
import { Problem } from '../domain/problem.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { getAccountId, type Handlers, listPage, requireFound, toTimes } from './call.ts'

type ShownSetting = { name: string; value: string | null; origin: string; about: string; secret: boolean }
type StoredFile = { path: string; bytes: number }

export type SystemDeps = {
  audit: AuditLog
  getStatus(): Promise<Status>
  listSettings(): ShownSetting[]
  about: { version: string; node_version: string; region: string; roles: string }
  backup(): Promise<{ directory: string; rows: number; files: number }>
  runSelfTest(): Promise<{ name: string; ok: boolean; detail: string }[]>
  signatures: {
    list(): Promise<{
      files: { path: string; bytes: number; changedMs: number; isOwn: boolean; source: string | null }[]
      officialAt: Date | undefined
    }>
    /** A sentence about missing or old databases, or about a failed update. */
    findFault(): string | undefined
    listRefused(): { path: string; reason: string }[]
    listModels(): { name: string; precision: string }[]
    /**
     * Checks and stores a signature file, and calls `note` in the same transaction. Throws an OperatorMistake for a file
     * that does not load.
     */
    place(name: string, bytes: AsyncIterable<Buffer>, note: () => Promise<void>): Promise<StoredFile>
    /** Returns false when the operator has no such file. */
    remove(name: string, note: () => Promise<void>): Promise<boolean>
    update(): Promise<{ state: 'updated' | 'up-to-date' | 'unavailable' | 'failed'; detail: string }>
  }
}

/** Handlers for the status of the service, its settings, signatures, backups and audit log. */
export function makeSystemHandlers(deps: SystemDeps) {
  const { audit, signatures } = deps

  return {
    getStatus: deps.getStatus,
    getSystem: async () => ({ ...deps.about, settings: deps.listSettings() }),

    async makeBackup(call) {
      const done = await deps.backup()
      await call.audit('backup', done.directory)
      return done
    },

    async runSelfTest() {
      const checks = await deps.runSelfTest()
      return { ok: checks.every(({ ok }) => ok), checks }
    },

    async listAudit({ query }) {
      const { action, actor, from, to } = query
      const filter = { action, actor, ...toTimes({ from, to }) }
      return listPage(
        query,
        ({ cursor, limit }) => audit.list(filter, { before: cursor, limit }),
        toAuditRow,
        (cursor) => /^\d{1,18}$/.test(cursor),
      )
    },

    async getSignatures() {
      const { files, officialAt } = await signatures.list()
      return {
        files: files.map(({ path, bytes, changedMs, isOwn, source }) => ({
          path,
          bytes,
          changed_at: new Date(changedMs).toISOString(),
          is_own: isOwn,
          source,
        })),
        official_at: officialAt?.toISOString() ?? null,
        fault: signatures.findFault() ?? null,
        refused: signatures.listRefused(),
        models: signatures.listModels(),
      }
    },

    async uploadSignatures(call) {
      const { name = '' } = call.params
      return signatures.place(name, call.request.raw, () => call.audit('signatures.add', name))
    },

    async removeSignatures(call) {
      const { name = '' } = call.params
      const note = () => call.audit('signatures.remove', name)
      requireFound(await signatures.remove(name, note), 'signature file')
    },

    async updateSignatures(call) {
      const result = await signatures.update()
      await call.audit('signatures.update', result.state)
      return result
    },
  } satisfies Partial<Handlers>
}

const toAuditRow = ({ id, at, actor, action, target, accountName, detail, address }: AuditRecord) => ({
  id,
  at: at.toISOString(),
  actor,
  action,
  target: target ?? null,
  account_name: accountName,
  detail: detail ?? null,
  address: address ?? null,
})

export type KnowledgeHandlerDeps = {
  hashLists: HashListStore
  revisions: RevisionStore
  accounts: AccountStore
  policy: AddressPolicy
}

/** Handlers for lists of known hashes, and for revisions of results. */
export function makeKnowledgeHandlers({ hashLists, revisions, accounts, policy }: KnowledgeHandlerDeps) {
  const listRevisionPage = (query: { cursor?: string; limit?: string }, accountId: string | undefined) =>
    listPage(
      query,
      ({ cursor, limit }) => revisions.listRevisions({ accountId, before: cursor, limit }),
      toRevisionRow,
      isRevisionId,
    )

  return {
    listHashLists: async () => (await hashLists.listActive()).map(toHashListRow),

    async removeHashList({ params: { name = '' }, audit }) {
      requireFound(await hashLists.remove('import', name), 'list')
      await audit('hashes.remove', name)
    },

    listRevisions: (call) => listRevisionPage(call.query, undefined),
    listAccountRevisions: (call) => listRevisionPage(call.query, getAccountId(call)),

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

const toHashListRow = (list: HashList): HashListRow => ({
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
