import type { Config } from '../config/load-config.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { ImageScan } from '../domain/scans/image-scan.ts'
import type { MalwareScan } from '../domain/scans/malware-scan.ts'
import { makeAssess } from '../domain/scans/scanner.ts'
import { newClosers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import { makeNoEngines } from './no-engines.ts'

type Parts = { malware: { malware: MalwareScan }; images: { images: ImageScan } }
type Deps = { contents: ContentStore; log: Logger; isTest: boolean }

/** Everything that looks at content, for a node that scans. */
export async function openEngines(config: Config, { contents, log, isTest }: Deps) {
  if (isTest) return { ...toWhole(makeNoEngines()), listEngines: () => [], close: async () => {} }
  // Only here: test mode starts faster without them.
  const [{ openImages }, { openMalware }] = await Promise.all([import('./images.ts'), import('./malware.ts')])
  const closers = newClosers()
  try {
    // Both at once: each waits for processes of its own.
    const opening = openImages(config, { log })
    closers.add(async () => (await opening).close())
    const malware = await openMalware(config, { contents, log, as: 'service' })
    closers.add(malware.close)
    const images = await opening
    return {
      ...toWhole({ malware, images }),
      listEngines: () => [...malware.listEngines(), ...images.listEngines()],
      close: closers.closeAll,
    }
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

/** Both with the one way to a verdict. */
const toWhole = <E extends Parts>(engines: E) => ({
  ...engines,
  assess: makeAssess({ malware: engines.malware.malware, images: engines.images.images }),
})

export type Engines = Awaited<ReturnType<typeof openEngines>>
