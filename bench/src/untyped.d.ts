/** Types of the packages of the peers, as far as they are used. */
declare module 'clamscan' {
  import type { Readable } from 'node:stream'

  type Scanned = { isInfected: boolean | null; viruses: string[] }
  export default class NodeClam {
    init(options: object): Promise<{ scanStream(stream: Readable): Promise<Scanned> }>
  }
}

/** Property that multer adds to requests of Express. */
declare namespace Express {
  interface Request {
    file?: { buffer: Buffer }
  }
}

declare module 'multer' {
  import type { RequestHandler } from 'express'

  function multer(options: { storage: unknown }): { single(name: string): RequestHandler }
  namespace multer {
    function memoryStorage(): unknown
  }
  export default multer
}
