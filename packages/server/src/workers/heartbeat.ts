import type { AssayNode, NodeStore } from '../domain/ports/node-store.ts'
import type { Logger } from '../runtime/logger.ts'

const everyMs = 5000

type Deps = {
  nodes: NodeStore
  describe(): Promise<AssayNode>
  log: Logger
  /** Whether the database is unreachable; the watch of the database logs that once for all parts. */
  isOutage?(error: unknown): boolean
}

/** Reports this node to the others every 5 seconds, and removes it when it closes. */
export function openHeartbeat(deps: Deps) {
  let failures = 0
  let id: string | undefined
  let running: Promise<void> | undefined
  const beat = async () => {
    try {
      const node = await deps.describe()
      id = node.id
      await deps.nodes.recordHeartbeat(node)
      failures = 0
    } catch (error) {
      if (failures++ === 0 && deps.isOutage?.(error) !== true) {
        deps.log.warn({ err: error }, 'cannot report this node as alive; retrying')
      }
    }
  }
  const beatOnce = () => {
    running ??= beat().finally(() => {
      running = undefined
    })
    return running
  }
  const timer = setInterval(beatOnce, everyMs)
  timer.unref()
  void beatOnce()

  return {
    async close() {
      clearInterval(timer)
      await running
      // When this fails, the node counts as gone once its heartbeat is too old.
      if (id !== undefined) await deps.nodes.removeNode(id).catch(() => {})
    },
  }
}
