import type { Config } from '../config/load-config.ts'
import type { Clock } from '../domain/clock.ts'
import type { HashLists } from '../domain/knowledge/hash-lists.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { EngineDown } from '../domain/ports/engines.ts'
import type { SignatureStore } from '../domain/ports/source-store.ts'
import type { Assess } from '../domain/scans/scan.ts'
import { makeAssess, noDegradation } from '../domain/scans/scanner.ts'
import { openParts } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { noExternal } from './external-engines.ts'
import type { openImages } from './images.ts'
import type { openMalware } from './malware.ts'

type Malware = Awaited<ReturnType<typeof openMalware>>
type Images = Awaited<ReturnType<typeof openImages>>
type Sandbox = { findFault(): string | undefined; findNote?(): string | undefined }
type SharedSignatures = { findFault(): string | undefined; refresh(): Promise<void> }
type Deps = {
  contents: ContentStore
  signatures: SignatureStore
  isOutage(error: unknown): boolean
  clock: Clock
  hashLists: HashLists
  findAccountPolicy(accountId: string): Promise<string | null>
  metrics: Pick<Metrics, 'countEscape' | 'timer'>
  log: Logger
  isTest: boolean
}

const idle = { countWaiting: () => 0, findFault: () => undefined, close: async () => {} }

/** Opens the malware and image engines of a node that scans. Test mode starts none. */
export const openEngines = (config: Config, deps: Deps) =>
  openParts(async (closers) => {
    const { contents, signatures, isOutage, clock, hashLists, findAccountPolicy, metrics, log, isTest } = deps
    if (isTest)
      return {
        ...newEngines(newTestModeMalware(), newTestModeImages(), idle, noSharedSignatures),
        onEscape: undefined,
        close: closers.closeAll,
      }
    // Imported here, so that test mode starts without loading the engines.
    const [{ openImages }, { openMalware }, { checkSandbox, makeEscapeReport }, { openSharedSignatures }] =
      await Promise.all([
        import('./images.ts'),
        import('./malware.ts'),
        import('./sandbox.ts'),
        import('./shared-signatures.ts'),
      ])
    const shared = await openSharedSignatures(config, { store: signatures, isOutage, log })
    closers.add(shared.close)
    const sandbox = checkSandbox(config, log)
    const onEscape = makeEscapeReport(metrics, log)
    // Images open while malware opens: each waits for its own child processes.
    const openingImages = openImages(config, { log, onEscape })
    closers.add(async () => (await openingImages).close())
    const parts = { contents, clock, hashLists, findAccountPolicy, log, onEscape }
    const malware = await openMalware(config, { ...parts, as: 'service' })
    closers.add(malware.close)
    const engines = newEngines(malware, await openingImages, sandbox, shared)
    return { ...engines, onEscape, assess: withTimer(engines.assess, metrics), close: closers.closeAll }
  })

export type Engines = Awaited<ReturnType<typeof openEngines>>

const newEngines = (malware: Malware, images: Images, sandbox: Sandbox, sharedSignatures: SharedSignatures) => ({
  malware,
  images,
  sandbox,
  sharedSignatures,
  /** Decides on content of either kind. */
  assess: makeAssess({ malware: malware.malware, images: images.images }),
  listEngines: () => [...malware.listEngines(), ...images.listEngines()],
})

/** Measures how long content takes from here to its verdict, or to the error of an engine. */
function withTimer(assess: Assess, metrics: Pick<Metrics, 'timer'>): Assess {
  const help = 'Time from content to verdict on the node that scans: engines, unpacking, and waiting for them.'
  const observe = metrics.timer('assay_scan_duration_seconds', help, ['kind'])
  return async (content, options) => {
    const startedAt = performance.now()
    try {
      return await assess(content, options)
    } finally {
      observe((performance.now() - startedAt) / 1000, options.kind)
    }
  }
}

const noSharedSignatures: SharedSignatures = { findFault: () => undefined, refresh: async () => {} }

/** In test mode only test keys get verdicts; a scan with any other key fails. */
const refuseScan = async () => {
  throw new EngineDown('There are no engines in test mode')
}

const newTestModeMalware = (): Malware => ({
  ...idle,
  malware: { assess: refuseScan },
  listEngines: () => [],
  degradation: noDegradation,
  findSignaturesAt: () => undefined,
  findSignatureFault: () => undefined,
  updates: undefined,
  listRefused: () => [],
  external: noExternal,
})

const newTestModeImages = (): Images => ({ ...idle, images: { assess: refuseScan }, listEngines: () => [] })
