import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Notifications, Topic } from '../domain/ports/notifications.ts'
import type { Logger } from '../runtime/logger.ts'
import { isOutage } from './database-error.ts'

const channel = 'assay'
/** Between two sendings. What is told meanwhile rides in the next one: a NOTIFY of each commit would slow all commits. */
const gapMs = 5
/** As many ids as a message of 8000 bytes has room for. */
const idsAtOnce = 200
/** More than that has to be found by looking. */
const maxUntold = 20_000
/** How often we make sure that we hear, and how long that may take. */
const probeEveryMs = 15_000
const probeMs = 2000
const firstRetryMs = 250
const lastRetryMs = 5000

/**
 * LISTEN and NOTIFY, on one connection of their own. It comes up by itself, again and again when it is lost. Behind a pool
 * that lends connections by the transaction nothing is heard: a probe finds that out, and everybody looks more often.
 */
export function openNotifications({
  url,
  pool,
  log,
}: {
  url: string
  pool: pg.Pool
  log: Logger
}): Notifications & { close(): Promise<void> } {
  const ears = new Map<Topic, ((ids: string[]) => void)[]>()
  const untold = new Map<Topic, Set<string>>()
  const lost = new WeakSet<pg.Client>()
  let client: pg.Client | undefined
  let isListening = false
  let isSending = false
  let isClosing = false
  let isReported = false
  let retryMs = firstRetryMs
  let timer: NodeJS.Timeout | undefined
  let onProbe: ((token: string) => void) | undefined
  let opening = open()

  return {
    send(topic, id) {
      const ids = untold.get(topic) ?? new Set()
      untold.set(topic, ids)
      if (id !== undefined && ids.size < maxUntold) ids.add(id)
      if (!isSending) void send()
    },
    on(topic, hear) {
      ears.set(topic, [...(ears.get(topic) ?? []), hear])
    },
    isListening: () => isListening,
    async close() {
      isClosing = true
      clearTimeout(timer)
      await opening
      await client?.end().catch(() => {})
    },
  }

  async function open() {
    if (isClosing) return
    const opened = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: 10_000,
      application_name: 'assay notifications',
      keepAlive: true,
      query_timeout: 5000,
    })
    opened.on('error', () => lose(opened))
    opened.on('end', () => lose(opened))
    opened.on('notification', ({ payload = '' }) => hear(payload))
    try {
      await opened.connect()
      // A message is no promise: its commit need not wait for the disk.
      await opened.query(`set synchronous_commit = off; listen ${channel}`)
      client = opened
      retryMs = firstRetryMs
      await probe(opened)
    } catch (error) {
      report(error)
      lose(opened)
      await opened.end().catch(() => {})
      return
    }
    timer = setTimeout(probeAgain, probeEveryMs, opened)
  }

  async function probe(on: pg.Client) {
    const token = randomUUID()
    const heard = new Promise<boolean>((resolve) => {
      const late = setTimeout(resolve, probeMs, false)
      onProbe = (back) => {
        if (back !== token) return
        clearTimeout(late)
        resolve(true)
      }
    })
    // From another connection, while ours has nothing to do: only whoever truly listens hears that.
    await pool.query('select pg_notify($1, $2)', [channel, `probe:${token}`])
    const isHeard = await heard
    if (client !== on) return
    if (!isHeard) report(new Error('LISTEN does not work on this connection'))
    else if (isReported) log.info('processes wake each other again')
    if (isHeard) isReported = false
    const isNew = isHeard && !isListening
    isListening = isHeard
    // Whatever was told before is told no more: everybody looks once.
    if (isNew) for (const topic of ['jobs', 'remote-scans'] as const) tellEars(topic, [])
  }

  function probeAgain(on: pg.Client) {
    opening = probe(on)
      .catch((error) => {
        report(error)
        lose(on)
        return on.end().catch(() => {})
      })
      .then(() => {
        if (client === on && !isClosing) timer = setTimeout(probeAgain, probeEveryMs, on)
      })
  }

  /** A connection tells of its loss more than once. */
  function lose(gone: pg.Client) {
    if (lost.has(gone)) return
    lost.add(gone)
    client = undefined
    isListening = false
    clearTimeout(timer)
    if (isClosing) return
    timer = setTimeout(() => {
      opening = open()
    }, retryMs)
    retryMs = Math.min(2 * retryMs, lastRetryMs)
  }

  function report(error: unknown) {
    // The watch says that, once.
    if (isOutage(error)) return
    if (!isReported && !isClosing) log.warn({ err: error }, 'processes cannot wake each other; they look by themselves')
    isReported = true
  }

  async function send() {
    isSending = true
    while (untold.size > 0) {
      const messages = toMessages(untold)
      untold.clear()
      try {
        await client?.query('select pg_notify($1, message) from unnest($2::text[]) as message', [channel, messages])
      } catch (error) {
        report(error)
      }
      await new Promise((resolve) => setTimeout(resolve, gapMs))
    }
    isSending = false
  }

  function hear(payload: string) {
    const [topic = '', list = ''] = payload.split(':', 2)
    if (topic === 'probe') onProbe?.(list)
    else tellEars(topic as Topic, list === '' ? [] : list.split(','))
  }

  function tellEars(topic: Topic, ids: string[]) {
    for (const ear of ears.get(topic) ?? []) ear(ids)
  }
}

function toMessages(untold: Map<Topic, Set<string>>): string[] {
  return [...untold].flatMap(([topic, ids]) => {
    if (ids.size === 0) return topic
    const all = [...ids]
    const count = Math.ceil(all.length / idsAtOnce)
    return Array.from(
      { length: count },
      (_, i) => `${topic}:${all.slice(i * idsAtOnce, (i + 1) * idsAtOnce).join(',')}`,
    )
  })
}
