import { join, resolve } from 'node:path'
import type { ScanKind } from '@assay/contract'
import { openContentStore } from '../blobs/content-store.ts'
import { makeMemoryBudget } from '../blobs/memory-content.ts'
import type { Config } from '../config/load-config.ts'
import type { Content } from '../domain/content/content.ts'
import { makeDescriber } from '../domain/content/media-type.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { openParts } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import { findContentMemory } from './content-memory.ts'
import { openImages } from './images.ts'
import { openMalware } from './malware.ts'

/** Opens one engine without the service, to scan files. Uses the clamd of a running service when there is one. */
export const openScanner = (config: Config, log: Logger, kind: ScanKind) =>
  openParts(async (closers) => {
    const contents = openContentStore({
      dir: join(resolve(config.dataDir), 'content'),
      memory: makeMemoryBudget({ maxBytes: findContentMemory(config) }),
    })
    closers.add(contents.close)
    const { assess, close } = await openAssessor(config, { contents, log, kind })
    closers.add(close)
    const describe = makeDescriber({ entries: 0 })
    return {
      async scan(bytes: AsyncIterable<Buffer>, name: string) {
        const writer = contents.newWriter()
        try {
          for await (const chunk of bytes) await writer.write(chunk)
          const content = await writer.finish()
          const { status, signals, metadata } = await assess(content, { contentName: name, accountId: null })
          const { contentType, hashes } = await describe(content, null)
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
  })

async function openAssessor(config: Config, deps: { contents: ContentStore; log: Logger; kind: ScanKind }) {
  if (deps.kind === 'nsfw_image') {
    const { images, close } = await openImages(config, deps)
    return { assess: (content: Content) => images.assess(content, { flagsSexy: true, accountId: null }), close }
  }
  const { malware, close } = await openMalware(config, { ...deps, as: 'command' })
  return { assess: malware.assess, close }
}
