import fastify from 'fastify'

/** The lower bound: a route that sets the same headers, without key, database and log. */
const app = fastify()
app.get('/v1/ping', async (_request, reply) => {
  reply.header('X-Assay-Region', 'local')
  reply.header('X-API-Credit-Limit', 2_000_000_000)
  reply.header('X-API-Credit-Remaining', 2_000_000_000)
  reply.header('X-Rate-Limit-Limit', '1m')
  reply.header('X-Rate-Limit-Remaining', 1_999_999_999)
  reply.header('X-Rate-Limit-Reset', '2026-01-31T09:30:00.000Z')
  return reply.send()
})
process.stdout.write(`${JSON.stringify({ url: await app.listen({ host: '127.0.0.1', port: 0 }) })}\n`)
