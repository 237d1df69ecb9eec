import type { Pool } from 'pg'
import type { NodeStatus, NodeStore } from '../domain/ports/operations.ts'
import { changeRows, findRow, listRows } from './query.ts'

/**
 * A node is alive while its last heartbeat is younger than 15 s; it sends three in that time. A heartbeat in the future
 * is from before the clock of the database was set back.
 */
export const nodeIsAlive = `abs(extract(epoch from now() - seen_at)) < 15`
const isSilent = `abs(extract(epoch from now() - seen_at)) > 3600`

export function makeNodeStore({ pool }: { pool: Pool }): NodeStore {
  return {
    async recordHeartbeat({ id, name, roles, version, startedAt, status, reasons, faults, engines }) {
      const values = [
        id,
        name,
        roles,
        version,
        startedAt,
        status,
        reasons,
        JSON.stringify(engines),
        JSON.stringify(faults),
      ]
      await changeRows(pool, upsertNode, values)
    },
    async removeNode(id) {
      await changeRows(pool, 'delete from nodes where id = $1', [id])
    },
    listNodes: () => listRows<NodeStatus>(pool, listNodes),
    async countWorkers() {
      return (await findRow<{ count: number }>(pool, countWorkers))?.count ?? 0
    },
    deleteSilent: () => changeRows(pool, `delete from nodes where ${isSilent}`),
  }
}

const upsertNode = `
-- name: record-heartbeat
insert into nodes (id, name, roles, version, started_at, status, reasons, engines, faults)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (id) do update
set seen_at = now(), status = excluded.status, reasons = excluded.reasons, engines = excluded.engines,
  faults = excluded.faults
`

const listNodes = `
select id, name, roles, version, started_at as "startedAt", seen_at as "seenAt", status, reasons, engines, faults,
  ${nodeIsAlive} as "isAlive"
from nodes order by name, started_at, id
`

const countWorkers = `
select count(*)::integer as count from nodes where 'worker' = any(roles) and ${nodeIsAlive}
`
