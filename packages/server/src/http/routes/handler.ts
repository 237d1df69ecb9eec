import type { FastifyReply, FastifyRequest } from 'fastify'

/** Reads, calls one domain verb, converts, replies. */
export type Handler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<unknown>
