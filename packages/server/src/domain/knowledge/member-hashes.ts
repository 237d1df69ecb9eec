import { EngineDown, type EngineReport, type ScanEngine } from '../ports/engines.ts'
import { type HashLists, toSignal } from './hash-lists.ts'

const nothing: EngineReport = { findings: [], doubts: [], suspectsContainer: false }

/**
 * Looks up the hashes of members, as an engine that does not open containers: Assay then unpacks every container that
 * it can open. The hash of the file itself is looked up once for all engines; see `withHashLists`.
 */
export function makeMemberHashes({ findActive, findHash }: HashLists) {
  const engine: ScanEngine = {
    name: 'Hash lists',
    kind: 'malware',
    opensContainers: false,
    isCertain: true,
    marksContainers: () => false,
    findState: () => ({
      version: 'Hash lists',
      verdictVersion: `hash lists ${findActive().version}`,
      signatures: undefined,
      signaturesAt: undefined,
    }),
    async scan({ sha256 }, _work, place) {
      if (place === undefined || place.depth === 0) return nothing
      const known = await findHash(sha256).catch((error) => {
        throw new EngineDown('The hash lists cannot be read', { cause: error })
      })
      return known?.verdict === 'bad' ? { ...nothing, findings: [toSignal(known).slice('Virus:'.length)] } : nothing
    },
  }
  return { engine, isActive: () => findActive().verdicts.includes('bad') }
}
