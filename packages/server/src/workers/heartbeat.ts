import type { AssayNode, NodeStore } from '../domain/ports/node-store.ts'
import type { Logger } from '../runtime/logger.ts'

const everyMs = 5000

type Deps = {
  nodes: NodeStore
  describe(): Promise<AssayNode>
  log: Logger
  /** The database is away: somebody else says so, once. */
  isOutage?(error: unknown): boolean
}

/** Says every few seconds that this process is alive, and once that it leaves. */
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
        deps.log.warn({ err: error }, 'this node cannot say that it is alive; trying again')
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
      // Silence says the same, only later.
      if (id !== undefined) await deps.nodes.removeNode(id).catch(() => {})
    },
  }
}
