import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'

/** For health checks, which must be answered when nobody else is. */
const spare = 32

const surplus = Symbol('one connection too many')
type MarkedSocket = Socket & { [surplus]?: true }

/**
 * Connections beyond the bound are let in only to be told so, and to ask after our health; beyond the spare ones they are
 * closed unheard. What has its place keeps it.
 */
export function boundConnections(server: Server, maxConnections: number) {
  let open = 0
  let refused = 0
  server.maxConnections = maxConnections + spare
  server.on('drop', () => {
    refused++
  })
  server.on('connection', (socket: MarkedSocket) => {
    if (++open > maxConnections) {
      socket[surplus] = true
      refused++
    }
    socket.once('close', () => {
      open--
    })
  })
  return {
    isSurplus: ({ raw }: FastifyRequest): boolean => (raw.socket as MarkedSocket)[surplus] === true,
    countOpen: () => open,
    countRefused: () => refused,
  }
}
