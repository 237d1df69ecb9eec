import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

/** Allows scripts and styles only from files of the console: nothing inline, no other host, no framing. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const htmlType = 'text/html; charset=utf-8'

const types: Record<string, string> = {
  '.html': htmlType,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

const root = '/console'

/** Serves the built console. Assets have a hash in their names and never change; every other path gets the page. */
export function registerConsole(app: FastifyInstance, dir: string) {
  const files = readFiles(dir)
  const page = files.get('index.html')
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Content-Security-Policy', contentPolicy)
    reply.header('Referrer-Policy', 'no-referrer').header('X-Frame-Options', 'DENY')
    return payload
  })
  for (const url of [root, `${root}/*`]) {
    app.get(url, async (request, reply) => {
      const path = (request.params as { '*'?: string })['*'] ?? ''
      const asset = files.get(path)
      if (page === undefined) return reply.code(503).type(htmlType).send(notBuilt)
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

/** Reads all files into memory: they are few and small, and no path of a request ever reaches the disk. */
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

/** Compresses on the first request, so that the start of the service does not wait for it. */
function makeCompress(body: Buffer): () => Promise<Buffer> {
  let compressed: Promise<Buffer> | undefined
  return () => {
    compressed ??= brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
    return compressed
  }
}
