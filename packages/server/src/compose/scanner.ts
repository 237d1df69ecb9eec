import { join, resolve } from 'node:path'
import { openContentStore } from '../blobs/content-store.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
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
    const { malware, describe, close } = await openMalware(config, { contents, log, as: 'guest' })
    closers.add(close)
    return {
      async scan(bytes: AsyncIterable<Buffer>, name: string) {
        const writer = contents.newWriter()
        try {
          for await (const chunk of bytes) await writer.write(chunk)
          const content = await writer.finish()
          const { status, signals, metadata } = await malware.assess(content, name)
          const { contentType, hashes } = await describe(content)
          return {
            status,
            content_length: content.bytes,
            content_type: contentType,
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
