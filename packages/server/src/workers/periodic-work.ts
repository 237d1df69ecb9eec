import { findConditions, type SendAlert } from '../domain/alerts.ts'
import type { AlertStore, ClaimedAlert } from '../domain/ports/alert-store.ts'
import type { AssayNode, NodeStore } from '../domain/ports/operations.ts'
import type { ClaimedSource, SourceStore } from '../domain/ports/source-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

const heartbeatMs = 5000

/** Reports this node to the others every 5 seconds, and removes it when it closes. */
export function openHeartbeat(deps: {
  nodes: NodeStore
  describe(): Promise<AssayNode>
  log: Logger
  /** Whether the database is unreachable; the watch of the database logs that once for all parts. */
  isOutage?(error: unknown): boolean
}) {
  let failures = 0
  let id: string | undefined
  const beats = repeat(async () => {
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
  }, heartbeatMs)
  void beats.run()

  return {
    async close() {
      await beats.close()
      // When this fails, the node counts as gone once its heartbeat is too old.
      if (id !== undefined) await deps.nodes.removeNode(id).catch(() => {})
    },
  }
}

/** `sweep` returns how many things it removed. */
export type CleanupTask = { name: string; sweep(): Promise<number> }

const sweepEveryMs = 60_000

/** Runs all cleanup tasks before it returns, and then every minute. */
export async function openSweeper(deps: {
  cleanupTasks: CleanupTask[]
  log: Logger
  /** Whether the database is unreachable; the remaining tasks wait for the next round then. */
  isOutage?(error: unknown): boolean
}) {
  const { cleanupTasks, log, isOutage } = deps
  await sweepAll()
  const { close } = repeat(sweepAll, sweepEveryMs)
  return { close }

  async function sweepAll() {
    for (const { name, sweep } of cleanupTasks) {
      try {
        const removed = await sweep()
        if (removed > 0) log.info({ removed }, `cleaned up: ${name}`)
      } catch (error) {
        if (isOutage?.(error)) return
        log.error({ err: error }, `cannot clean up: ${name}`)
      }
    }
  }
}

/** Runs `work`, which does not throw, at an interval and whenever `run` is called. A call during a run joins that run. */
function repeat(work: () => Promise<void>, everyMs: number) {
  let running: Promise<void> | undefined
  const run = () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
  const timer = setInterval(run, everyMs)
  timer.unref()
  return {
    run,
    /** Waits for a run that has begun. */
    async close() {
      clearInterval(timer)
      await running
    },
  }
}

/** Conditions of alerts, and sources whose update is due, are looked for this often. */
const pollMs = 10_000
/** A process does not look for conditions if another one did within this part of the interval. */
const minAgeShare = 0.8
const alertsAtOnce = 4
/** Longer than an attempt. */
const alertLeaseMs = 120_000
/** Pauses before the further attempts at a message. */
const alertRetryMs = [10_000, 60_000, 300_000, 1_800_000, 7_200_000]

/**
 * Looks for conditions to tell of, and sends the messages. The store lets one process look at a time, and leases each
 * message to one process. A message whose process is killed is sent again when its lease ends.
 */
export function openAlertWorker(deps: {
  store: Pick<AlertStore, 'update' | 'claim' | 'recordAttempt'>
  send: SendAlert
  log: Logger
  isOutage(error: unknown): boolean
  everyMs?: number
}) {
  const { store, send, log, isOutage, everyMs = pollMs } = deps
  const { poke, close } = openLeasedWork({
    name: 'alerts',
    countRoom: (running) => alertsAtOnce - running,
    async claim(limit) {
      const [looked] = await Promise.allSettled([store.update(findConditions, minAgeShare * everyMs)])
      const claimed = await store.claim(limit, alertLeaseMs)
      // Messages that are waiting are sent also while the look for conditions fails.
      if (looked.status === 'rejected' && claimed.length === 0) throw looked.reason
      return claimed
    },
    findPollMs: () => everyMs,
    claimsMore: () => false,
    pokeEndsBackOff: false,
    toLease: ({ token }: ClaimedAlert) => ({ token }),
    toId: ({ message }) => message.id,
    async run(claimed) {
      const { channel, message, attempts } = claimed
      const failure = await send(channel, message, attempts)
      const pauseMs = failure === null ? undefined : alertRetryMs[attempts]
      await store.recordAttempt(claimed, { failure, pauseMs })
      const line = { channelId: channel.id, accountId: channel.accountId, kind: channel.kind, topic: message.topic }
      if (failure === null) log.info(line, `alert sent: ${message.state}`)
      else log.warn({ ...line, reason: failure }, pauseMs === undefined ? 'an alert was not sent' : 'alert delayed')
    },
    log,
    isOutage,
  })
  /** Running attempts are finished on close, which takes at most the time limit of one attempt. */
  return { poke, close: () => close() }
}

export const sourceLeaseMs = 60_000
/** A stopped update has this time to end its processes. It records nothing, so closing does not wait longer. */
const sourceCloseMs = 5000

/**
 * Updates sources of signatures when they are due, one at a time. The store leases each to one process, and another
 * takes over when that is killed.
 */
export function openSourceWorker(deps: {
  store: Pick<SourceStore, 'claim' | 'extend' | 'release'>
  update(claimed: ClaimedSource, stopping: AbortSignal): Promise<unknown>
  log: Logger
  isOutage(error: unknown): boolean
  everyMs?: number
}) {
  const { store, update, log, isOutage, everyMs = pollMs } = deps
  const { poke, stop, close } = openLeasedWork({
    name: 'updates of sources',
    countRoom: (running) => 1 - running,
    async claim() {
      const claimed = await store.claim(sourceLeaseMs)
      return claimed === undefined ? [] : [claimed]
    },
    findPollMs: () => everyMs,
    claimsMore: () => true,
    pokeEndsBackOff: false,
    toLease: ({ token }: ClaimedSource) => ({ token }),
    toId: ({ name }) => name,
    async run(claimed, { stopping, lost }) {
      const signal = AbortSignal.any([stopping, lost])
      try {
        await update(claimed, signal)
      } catch (error) {
        // An update that was stopped begins again, here or elsewhere.
        await store.release([claimed.token])
        if (!signal.aborted) throw error
      }
    },
    renewal: {
      everyMs: sourceLeaseMs / 4,
      async extend(leases) {
        const tokens = leases.map(({ token }) => token)
        return (await store.extend(tokens, sourceLeaseMs)).map((token) => ({ token }))
      },
      release: (leases) => store.release(leases.map(({ token }) => token)),
    },
    log,
    isOutage,
  })
  return {
    poke,
    async close(withinMs = sourceCloseMs) {
      stop()
      await close(withinMs)
    },
  }
}
