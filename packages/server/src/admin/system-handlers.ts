import type { Status } from '@assay/contract/admin'
import type { AuditLog, AuditRecord } from '../domain/ports/audit-log.ts'
import { type Handlers, listPage, requireFound, toTimes } from './call.ts'

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
