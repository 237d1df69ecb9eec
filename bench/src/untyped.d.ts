/** The packages of the peers bring no types: as much of them as is used. */
declare module 'clamscan' {
  import type { Readable } from 'node:stream'

  type Scanned = { isInfected: boolean | null; viruses: string[] }
  export default class NodeClam {
    init(options: object): Promise<{ scanStream(stream: Readable): Promise<Scanned> }>
  }
}

declare module 'express' {
  type Response = { status(code: number): Response; json(body: unknown): void }
  type Handler = (request: { file?: { path: string; buffer: Buffer } }, response: Response) => Promise<void>
  type Server = { address(): { port: number }; keepAliveTimeout: number }
  export default function express(): {
    post(path: string, before: unknown, handler: Handler): void
    listen(port: number, host: string, ready: () => void): Server
  }
}

declare module 'multer' {
  function multer(options: { storage: unknown }): { single(name: string): unknown }
  namespace multer {
    function diskStorage(options: { destination: string }): unknown
    function memoryStorage(): unknown
  }
  export default multer
}
