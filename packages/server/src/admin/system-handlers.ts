import type { operatorRoutes, Status } from '@assay/contract/admin'
import type { AuditLog } from '../domain/ports/audit-log.ts'
import { type Handlers, requireThere } from './call.ts'

type Shown = { name: string; value: string | null; origin: string; about: string; secret: boolean }
type Placed = { path: string; bytes: number }

export type SystemDeps = {
  audit: AuditLog
  getStatus(): Promise<Status>
  listSettings(): Shown[]
  about: { version: string; node_version: string; region: string; roles: string }
  backup(): Promise<{ directory: string; rows: number; files: number }>
  runSelfTest(): Promise<{ name: string; ok: boolean; detail: string }[]>
  signatures: {
    list(): {
      files: { path: string; bytes: number; changedMs: number; isOwn: boolean }[]
      releasedAt: Date | undefined
    }
    listRefused(): { path: string; reason: string }[]
    listModels(): { name: string; precision: string }[]
    /** The whole file is in the bytes; throws an OperatorMistake for one that does not load. */
    place(name: string, bytes: AsyncIterable<Buffer>): Promise<Placed>
    /** False when there is no such file of the operator's. */
    remove(name: string): boolean
    update(): Promise<{ state: 'updated' | 'up-to-date' | 'unavailable'; detail: string }>
  }
}

type Names =
  | 'getStatus'
  | 'getSystem'
  | 'makeBackup'
  | 'runSelfTest'
  | 'listAudit'
  | 'getSignatures'
  | 'uploadSignatures'
  | 'removeSignatures'
  | 'updateSignatures'

/** The service itself: how it is, what it knows malware by, and who changed what. */
export function makeSystemHandlers(deps: SystemDeps): Handlers<Names & keyof typeof operatorRoutes> {
  const { audit, signatures } = deps
  const note = (call: { who: { actor: string }; origin: { address: string } }, action: string, target: string) =>
    audit.note({ actor: call.who.actor, action, target, address: call.origin.address })

  return {
    getStatus: deps.getStatus,
    getSystem: async () => ({ ...deps.about, settings: deps.listSettings() }),

    async makeBackup(call) {
      const done = await deps.backup()
      await note(call, 'backup', done.directory)
      return done
    },

    async runSelfTest() {
      const checks = await deps.runSelfTest()
      return { ok: checks.every(({ ok }) => ok), checks }
    },

    async listAudit({ query }) {
      const limit = Number(query.limit ?? 50)
      const before = /^\d{1,18}$/.test(query.cursor ?? '') ? query.cursor : undefined
      const found = await audit.list({ before, action: query.action, limit: limit + 1 })
      const items = found.slice(0, limit).map(({ id, at, actor, action, target, accountName, detail, address }) => ({
        ...{ id, at: at.toISOString(), actor, action, target: target ?? null, account_name: accountName },
        ...{ detail: detail ?? null, address: address ?? null },
      }))
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async getSignatures() {
      const { files, releasedAt } = signatures.list()
      return {
        files: files.map(({ path, bytes, changedMs, isOwn }) => ({
          ...{ path, bytes, changed_at: new Date(changedMs).toISOString(), is_own: isOwn },
        })),
        released_at: releasedAt?.toISOString() ?? null,
        ...{ refused: signatures.listRefused(), models: signatures.listModels() },
      }
    },

    async uploadSignatures(call) {
      const { name = '' } = call.params
      const placed = await signatures.place(name, call.request.raw)
      await note(call, 'signatures.add', name)
      return placed
    },

    async removeSignatures(call) {
      const { name = '' } = call.params
      requireThere(signatures.remove(name), 'signature file of yours')
      await note(call, 'signatures.remove', name)
    },

    async updateSignatures(call) {
      const result = await signatures.update()
      await note(call, 'signatures.update', result.state)
      return result
    },
  }
}
