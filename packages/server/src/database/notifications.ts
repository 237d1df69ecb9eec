import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Notifications, Topic } from '../domain/ports/job-store.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Connector } from './connector.ts'
import { isOutage } from './database-error.ts'
import type { Queryable } from './query.ts'

type Deps = {
  connector: Connector
  pool: pg.Pool
  log: Logger
  /** Whether `connector` leads elsewhere than `pool`, so that one can fail without the other. */
  hasOwnAddress?: boolean
}

const channel = 'assay'
/**
 * Pause between two sends. Ids that come meanwhile share the next message: a NOTIFY for each commit would slow commits.
 */
const sendPauseMs = 5
/** The most ids that fit into a message, which PostgreSQL limits to 8000 bytes. */
const idsPerMessage = 200
/** Beyond this number ids are dropped; their receivers find the rows by polling. */
const maxPendingIds = 20_000
/** How often a probe checks that notifications arrive, and how long a probe may take. */
const probeEveryMs = 15_000
const probeTimeoutMs = 2000
const firstRetryMs = 250
const lastRetryMs = 5000

/**
 * LISTEN and NOTIFY on a connection of their own, which reconnects when it is lost. Behind a pooler in transaction mode
 * no notification arrives: a probe finds that out, `isListening` becomes false, and receivers poll more often.
 */
export function openNotifications(deps: Deps): Notifications & { close(): Promise<void> } {
  const receivers = new Map<Topic, ((ids: string[]) => void)[]>()
  const deliver = (topic: Topic, ids: string[]) => {
    for (const receive of receivers.get(topic) ?? []) receive(ids)
  }
  const connection = openListenConnection(deps, {
    onNotification: (topic, ids) => deliver(topic, ids),
    // Notifications sent before this moment were missed, so all receivers check for work once.
    onListening: () => {
      deliver('jobs', [])
      deliver('remote-scans', [])
      deliver('signatures', [])
      deliver('hash-lists', [])
    },
  })
  return {
    send: makeOutbox(connection.notify),
    on(topic, receive) {
      receivers.set(topic, [...(receivers.get(topic) ?? []), receive])
    },
    isListening: connection.isListening,
    close: connection.close,
  }
}

/** Sends a message that leaves when the transaction commits. */
export async function sendInTransaction(client: Queryable, topic: Topic): Promise<void> {
  await client.query('select pg_notify($1, $2)', [channel, topic])
}

/** Collects ids and sends those of each topic together. */
function makeOutbox(notify: (messages: string[]) => Promise<void>): Notifications['send'] {
  const pending = new Map<Topic, Set<string>>()
  let isSending = false

  async function sendAll() {
    isSending = true
    while (pending.size > 0) {
      const messages = [...pending].flatMap(([topic, ids]) => toMessages(topic, [...ids]))
      pending.clear()
      await notify(messages)
      await sleep(sendPauseMs)
    }
    isSending = false
  }

  return (topic, id) => {
    const ids = pending.get(topic) ?? new Set()
    pending.set(topic, ids)
    if (id !== undefined && ids.size < maxPendingIds) ids.add(id)
    if (!isSending) void sendAll()
  }
}

function toMessages(topic: Topic, ids: string[]): string[] {
  if (ids.length === 0) return [topic]
  const count = Math.ceil(ids.length / idsPerMessage)
  return Array.from({ length: count }, (_, i) => {
    return `${topic}:${ids.slice(i * idsPerMessage, (i + 1) * idsPerMessage).join(',')}`
  })
}

type Events = { onNotification(topic: Topic, ids: string[]): void; onListening(): void }

function openListenConnection(
  { connector, pool, log, hasOwnAddress = false }: Deps,
  { onNotification, onListening }: Events,
) {
  const closing = new AbortController()
  let client: pg.Client | undefined
  let isListening = false
  let isReported = false
  let onProbe: ((token: string) => void) | undefined
  const running = keepConnected()

  return {
    isListening: () => isListening,
    async notify(messages: string[]) {
      const text = 'select pg_notify($1, message) from unnest($2::text[]) as message'
      await client?.query(text, [channel, messages]).catch(report)
    },
    async close() {
      closing.abort()
      await running
    },
  }

  async function keepConnected() {
    for (let retryMs = firstRetryMs; !closing.signal.aborted; retryMs = Math.min(2 * retryMs, lastRetryMs)) {
      if (await connectOnce()) retryMs = firstRetryMs
      await pause(retryMs, closing.signal)
    }
  }

  /** Listens until the connection is lost or closed. Returns whether there was a connection. */
  async function connectOnce(): Promise<boolean> {
    const connection = connector.newClient({
      connectionTimeoutMillis: 10_000,
      application_name: 'assay notifications',
      query_timeout: 5000,
    })
    const lost = new AbortController()
    const ended = AbortSignal.any([lost.signal, closing.signal])
    connection.on('error', () => lost.abort()).on('end', () => lost.abort())
    connection.on('notification', ({ payload = '' }) => receive(payload))
    try {
      await connection.connect()
      // Receivers also poll, so a notification may be lost and its commit need not wait for the disk.
      await connection.query(`set synchronous_commit = off; listen ${channel}`)
      client = connection
      while (!ended.aborted) {
        await probe(ended)
        await pause(probeEveryMs, ended)
      }
    } catch (error) {
      report(error)
    }
    const wasConnected = client !== undefined
    client = undefined
    isListening = false
    await connection.end().catch(() => {})
    return wasConnected
  }

  /** Sends a notification from another connection and waits for it here. */
  async function probe(ended: AbortSignal) {
    const token = randomUUID()
    const received = Promise.withResolvers<boolean>()
    onProbe = (other) => other === token && received.resolve(true)
    await pool.query('select pg_notify($1, $2)', [channel, `probe:${token}`])
    const isReceived = await Promise.race([received.promise, pause(probeTimeoutMs, ended).then(() => false)])
    if (ended.aborted) return
    if (!isReceived) report(new Error('LISTEN does not work on this connection'))
    else if (isReported) log.info('notifications between processes work again')
    if (isReceived) isReported = false
    const isNew = isReceived && !isListening
    isListening = isReceived
    if (isNew) onListening()
  }

  function receive(payload: string) {
    const [topic = '', ids = ''] = payload.split(':', 2)
    if (topic === 'probe') onProbe?.(ids)
    else onNotification(topic as Topic, ids === '' ? [] : ids.split(','))
  }

  function report(error: unknown) {
    // An outage of the address that is watched is logged once, by watchDatabase.
    if (isOutage(error) && !hasOwnAddress) return
    if (!isReported && !closing.signal.aborted)
      log.warn({ err: error }, 'notifications between processes do not work; they poll more often')
    isReported = true
  }
}

/** Ends early when the signal aborts. */
const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})
