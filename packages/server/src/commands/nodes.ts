import type { Command } from 'commander'
import type { NodeStatus } from '../domain/ports/operations.ts'
import { newCommand, print, toTable, withStores } from './terminal.ts'

export function makeNodesCommand(): Command {
  return newCommand('nodes', 'list the nodes of this installation with their roles and health').action(
    async (_options: unknown, command: Command) => {
      const nodes = await withStores((stores) => stores.nodes.listNodes())
      print(command, nodes.map(toJson), toText(nodes))
    },
  )
}

const toJson = (node: NodeStatus) => ({
  id: node.id,
  name: node.name,
  roles: node.roles,
  version: node.version,
  started_at: node.startedAt.toISOString(),
  seen_at: node.seenAt.toISOString(),
  alive: node.isAlive,
  status: toStatus(node),
  reasons: node.reasons,
  engines: node.engines.map(({ name, version, signaturesAt }) => ({ name, version, signatures_at: signaturesAt })),
})

const toText = (nodes: NodeStatus[]) =>
  toTable(
    ['id', 'name', 'roles', 'version', 'seen', 'status', 'engines'],
    nodes.map((node) => [
      node.id,
      node.name,
      node.roles.join(','),
      node.version,
      node.seenAt.toISOString(),
      toStatus(node),
      node.engines.map(({ name, version }) => version ?? `${name} (down)`).join('; ') || null,
    ]),
  )

/** The status a node reported last is meaningless once its heartbeat has stopped. */
const toStatus = ({ isAlive, status }: NodeStatus) => (isAlive ? status : 'silent')
