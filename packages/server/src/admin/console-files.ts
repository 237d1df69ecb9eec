import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

/** Scripts and styles of our own files alone, nothing inline, no other host, in nobody's frame. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

const root = '/console'

/** The console as it was built. Its files carry their hash in their names and stay; every other path is the page itself. */
export function registerConsole(app: FastifyInstance, dir: string) {
  const files = readFiles(dir)
  const page = files.get('index.html')
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Content-Security-Policy', contentPolicy).header('X-Content-Type-Options', 'nosniff')
    reply.header('Referrer-Policy', 'no-referrer').header('X-Frame-Options', 'DENY')
    return payload
  })
  for (const url of [root, `${root}/*`]) {
    app.get(url, async (request, reply) => {
      const path = (request.params as { '*'?: string })['*'] ?? ''
      const asset = files.get(path)
      if (page === undefined)
        return reply
          .code(503)
          .type(types['.html'] ?? '')
          .send(notBuilt)
      const isFixed = asset !== undefined && path.startsWith('assets/')
      if (asset === undefined && path.startsWith('assets/')) return reply.callNotFound()
      const { type, body, compress } = asset ?? page
      reply.type(type).header('Cache-Control', isFixed ? 'public, max-age=31536000, immutable' : 'no-cache')
      reply.header('Vary', 'Accept-Encoding')
      const takesBrotli = String(request.headers['accept-encoding'] ?? '').includes('br')
      return takesBrotli ? reply.header('Content-Encoding', 'br').send(await compress()) : reply.send(body)
    })
  }
}

const notBuilt = '<!doctype html><title>Assay</title><p>The console is not built. Run: npm run build:console</p>'

type Asset = { type: string; body: Buffer; compress(): Promise<Buffer> }

/** All in memory: they are few and small, and no path of a caller ever reaches the disk. */
function readFiles(dir: string): Map<string, Asset> {
  const files = new Map<string, Asset>()
  if (!existsSync(dir)) return files
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const path = join(dir, name)
    const type = types[extname(name)]
    if (type === undefined || !statSync(path).isFile()) continue
    const body = readFileSync(path)
    files.set(relative(dir, path), { type, body, compress: makeCompress(body) })
  }
  return files
}

const brotli = promisify(brotliCompress)

/** By the first who asks: a start need not wait for it. */
function makeCompress(body: Buffer): () => Promise<Buffer> {
  let small: Promise<Buffer> | undefined
  return () => {
    small ??= brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
    return small
  }
}
