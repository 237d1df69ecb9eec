import type { Pool } from 'pg'
import type { NodeEngine, NodeStore } from '../domain/ports/node-store.ts'

/** A node says that it is alive three times as often. */
const aliveFor = `interval '15 seconds'`
const silentFor = `interval '1 hour'`

export function makeNodeStore({ pool }: { pool: Pool }): NodeStore {
  return {
    async see({ id, name, roles, version, startedAt, status, reasons, engines }) {
      const values = [id, name, roles, version, startedAt, status, reasons, JSON.stringify(engines)]
      await pool.query({ name: 'see-node', text: seeNode, values })
    },
    async leave(id) {
      await pool.query('delete from nodes where id = $1', [id])
    },
    async listNodes() {
      const { rows } = await pool.query<NodeRow>(listNodes)
      return rows.map(({ started_at, seen_at, is_alive, ...row }) => ({
        ...row,
        startedAt: started_at,
        seenAt: seen_at,
        isAlive: is_alive,
      }))
    },
    async countWorkers() {
      const { rows } = await pool.query<{ count: number }>(countWorkers)
      return rows[0]?.count ?? 0
    },
    async deleteSilent() {
      const { rowCount } = await pool.query(`delete from nodes where seen_at < now() - ${silentFor}`)
      return rowCount ?? 0
    },
  }
}

type NodeRow = {
  id: string
  name: string
  roles: string[]
  version: string
  started_at: Date
  seen_at: Date
  status: string
  reasons: string[]
  engines: NodeEngine[]
  is_alive: boolean
}

const seeNode = `
insert into nodes (id, name, roles, version, started_at, status, reasons, engines)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do update
set seen_at = now(), status = excluded.status, reasons = excluded.reasons, engines = excluded.engines
`

const listNodes = `
select id, name, roles, version, started_at, seen_at, status, reasons, engines,
  seen_at > now() - ${aliveFor} as is_alive
from nodes order by name, started_at, id
`

const countWorkers = `
select count(*)::integer as count from nodes where 'worker' = any(roles) and seen_at > now() - ${aliveFor}
`
