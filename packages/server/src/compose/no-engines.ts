import { EngineDown } from '../domain/ports/engines.ts'
import type { openImages } from './images.ts'
import type { openMalware } from './malware.ts'

/** Test mode alone: nothing is started, and nothing can be scanned. A key that is not for tests gets a failure. */
export function makeNoEngines(): {
  malware: Awaited<ReturnType<typeof openMalware>>
  images: Awaited<ReturnType<typeof openImages>>
} {
  const assess = async () => {
    throw new EngineDown('There are no engines in test mode')
  }
  const none = { listEngines: () => [], countWaiting: () => 0, findFault: () => undefined, close: async () => {} }
  return {
    malware: { ...none, updateSignatures: undefined, listRefused: () => [], malware: { assess } },
    images: { ...none, images: { assess } },
  }
}
