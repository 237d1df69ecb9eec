import type { Connection, LastReplies } from '../../src/listeners/connection.ts'
import { timeoutResponse, toFailureResponse } from '../../src/listeners/icap/icap-response.ts'
import { serveIcap } from '../../src/listeners/icap/serve-icap.ts'
import { type ListenerScan, type ListenerScans, mostBytes } from '../../src/listeners/listener-scan.ts'
import { serveClamd, toClamdReplies } from '../../src/listeners/serve-clamd.ts'

type Protocol = { serve(connection: Connection): Promise<void>; replies: LastReplies }

/** Both protocols over scans that never end: `begun` counts those that have all of their content. */
export function newEndlessScans({ begin = async () => {}, trickles = false } = {}) {
  const state = { begun: 0 }
  const scan: ListenerScan = {
    write: () => undefined,
    finish: () => {
      state.begun++
      return new Promise(() => {})
    },
    takeContent: () => new Promise(() => {}),
    abort: async () => {},
  }
  const scans: ListenerScans = {
    maxBytes: mostBytes,
    async begin() {
      await begin()
      return scan
    },
  }
  const clamd: Protocol = {
    serve: (connection) =>
      serveClamd(connection, {
        scans,
        onFailure: 'found',
        findVersion: () => 'ClamAV',
        countLoad: () => ({ connections: 0, maxConnections: 1, waiting: 0 }),
      }),
    replies: toClamdReplies('found'),
  }
  const icap: Protocol = {
    serve: (connection) =>
      serveIcap(connection, {
        scans,
        reportUnscanned() {},
        onError: 'block',
        trickles,
        maxConnections: 10,
        findTag: () => '"tag"',
        server: 'Assay',
      }),
    replies: { timeout: timeoutResponse, fail: toFailureResponse },
  }
  return { clamd, icap, state }
}
