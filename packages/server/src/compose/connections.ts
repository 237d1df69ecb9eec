import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { availableParallelism } from 'node:os'
import { createSecureContext, Server as TlsServer } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { watchCertificate } from '../runtime/watch-files.ts'

/** The HTTP server, in this process or in several. */
export type HttpListener = {
  url: string
  /** Makes clients close their connections, for what `Readiness` does not do. */
  startStopping(): void
  /** Ends idle connections now and all others after `withinMs`. Returns a function that stops doing so. */
  startDraining(withinMs: number): () => void
}

/** Cores for each HTTP process: the engines and the database need the others. */
const coresPerProcess = 4
/** HTTP processes beyond this number wait for the main process. */
const mostProcesses = 4

/** Processes that serve HTTP. With one, the service itself does. A worker serves its health checks only. */
export const countHttpProcesses = ({ httpProcesses, roles }: Pick<Config, 'httpProcesses' | 'roles'>): number =>
  roles.api
    ? (httpProcesses ?? Math.min(mostProcesses, Math.max(1, Math.floor(availableParallelism() / coresPerProcess))))
    : 1

/** Files kept for database and engine connections, pipes to child processes and listening sockets. */
const filesForOthers = 160

/** Connections that the limit of open files allows: one file for the socket, one for its content. */
export function countConnectionsByFileLimit(): number {
  const limit = readFileLimit()
  return Math.max(1, Math.floor((limit - Math.min(filesForOthers, limit / 2)) / 2))
}

/**
 * Lowers the limits of listeners whose connections would take more than half of what the limit of open files allows, in
 * proportion: a client that is accepted without a file left for its content gets no reply.
 */
export function fitListeners(wanted: number[], allowed = countConnectionsByFileLimit()): number[] {
  const sum = wanted.reduce((total, count) => total + count, 0)
  const share = Math.min(1, allowed / 2 / sum)
  return wanted.map((count) => Math.max(1, Math.floor(count * share)))
}

/** The limit of open files and sockets of this process. Node raises the soft limit to the hard limit at its start. */
function readFileLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(limits) ?? []
    return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Reads the certificate of the HTTP server and its key; undefined without TLS. */
export function readCertificate({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>) {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  try {
    const pair = { cert: readFileSync(tlsCert, 'utf8'), key: readFileSync(tlsKey, 'utf8') }
    createSecureContext(pair)
    return pair
  } catch (error) {
    const { message } = error as Error
    throw new OperatorMistake(`ASSAY_TLS_CERT and ASSAY_TLS_KEY cannot be used: ${message}.`, { cause: error })
  }
}

/** Reloads the certificate of the HTTP server when its files change. Returns a function that stops doing so. */
export function watchHttpCertificate(config: Pick<Config, 'tlsCert' | 'tlsKey'>, server: Server, log: Logger) {
  const { tlsCert, tlsKey } = config
  if (tlsCert === undefined || tlsKey === undefined) return () => {}
  const apply = () => {
    if (!(server instanceof TlsServer)) throw new Error('This server does not use TLS')
    server.setSecureContext({ cert: readFileSync(tlsCert), key: readFileSync(tlsKey) })
  }
  return watchCertificate({ files: [tlsCert, tlsKey], apply, log })
}
