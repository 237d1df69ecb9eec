import { join, resolve } from 'node:path'
import { openContentStore } from '../blobs/content-store.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { findMediaType } from '../domain/content/media-type.ts'
import { newClosers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import { openMalware } from './malware.ts'

/** The engines without the service, for one look at a file. Uses the clamd of a running service when there is one. */
export async function openScanner(config: Config, log: Logger) {
  const closers = newClosers()
  try {
    const contents = openContentStore({
      dir: join(resolve(config.dataDir), 'content'),
      master: openMasterKey(config.masterKey, config.dataDir),
    })
    closers.add(contents.close)
    const { malware, close } = await openMalware(config, { contents, log, as: 'guest' })
    closers.add(close)
    return {
      async scan(bytes: AsyncIterable<Buffer>, name: string) {
        const writer = contents.newWriter()
        try {
          for await (const chunk of bytes) await writer.write(chunk)
          const content = await writer.finish()
          const { status, signals, metadata } = await malware.assess(content, name)
          const hashes = { hash_sha1: content.sha1, hash_sha256: content.sha256 }
          return {
            status,
            content_length: content.bytes,
            content_type: await findMediaType(content.head, content.bytes),
            signals,
            metadata: { ...hashes, ...metadata },
          }
        } finally {
          await writer.abort()
        }
      },
      close: closers.closeAll,
    }
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}
