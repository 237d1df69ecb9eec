import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A publisher on an address of its own. `serve` sets what a path answers; content has an ETag and answers 304. */
export async function openPublisher(host = '127.9.9.40') {
  const answers = new Map<string, Answer>()
  const asked: { path: string; status: number }[] = []
  const server = createServer((request, response) => {
    response.once('close', () => asked.push({ path: request.url ?? '', status: response.statusCode }))
    const answer = answers.get(request.url ?? '')
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const url = `http://${host}:${(server.address() as AddressInfo).port}`
  return {
    close() {
      server.closeAllConnections()
      server.close()
    },
    url,
    asked,
    answer: (path: string, answer: Answer) => answers.set(path, answer),
    serve(path: string, content: Buffer | string) {
      const etag = `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`
      answers.set(path, (request, response) => {
        if (request.headers['if-none-match'] === etag) response.writeHead(304).end()
        else response.writeHead(200, { etag }).end(content)
      })
      return `${url}${path}`
    },
  }
}

export const toNdb = (name: string, text: string) => `${name}:0:*:${Buffer.from(text).toString('hex')}\n`
export const toYara = (name: string, text: string) => `rule ${name} {\n  strings: $a = "${text}"\n  condition: $a\n}\n`

/** Keys and signatures in the format of minisign. */
export function newMinisign() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const id = Buffer.from('0123456789abcdef', 'hex')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return {
    key: Buffer.concat([Buffer.from('Ed'), id, raw]).toString('base64'),
    sign(content: Buffer, algorithm: 'Ed' | 'ED' = 'ED', comment = 'timestamp:1'): string {
      const signed = algorithm === 'ED' ? createHash('blake2b512').update(content).digest() : content
      const signature = sign(null, signed, privateKey)
      const commentSignature = sign(null, Buffer.concat([signature, Buffer.from(comment)]), privateKey)
      const first = Buffer.concat([Buffer.from(algorithm), id, signature]).toString('base64')
      return `untrusted comment: x\n${first}\ntrusted comment: ${comment}\n${commentSignature.toString('base64')}\n`
    },
  }
}
