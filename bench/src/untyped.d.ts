/** The packages of the peers bring no types: as much of them as is used. */
declare module 'clamscan' {
  import type { Readable } from 'node:stream'

  type Scanned = { isInfected: boolean | null; viruses: string[] }
  export default class NodeClam {
    init(options: object): Promise<{ scanStream(stream: Readable): Promise<Scanned> }>
  }
}

/** What multer adds to the requests of Express. */
declare namespace Express {
  interface Request {
    file?: { path: string; buffer: Buffer }
  }
}

declare module 'multer' {
  import type { RequestHandler } from 'express'

  function multer(options: { storage: unknown }): { single(name: string): RequestHandler }
  namespace multer {
    function diskStorage(options: { destination: string }): unknown
    function memoryStorage(): unknown
  }
  export default multer
}
