import type { ImageReport } from '../../domain/ports/engines.ts'
import type { Model } from './models/model.ts'

export type Profile = 'fast' | 'balanced' | 'thorough'

export type ModelToOpen = Pick<Model, 'path' | 'form' | 'isOwn'>

/** The models that an image process opens, and how it uses them. */
export type Opening = {
  /** The profile `fast` uses the first model only. */
  models: { first: ModelToOpen; second: ModelToOpen | undefined }
  profile: Profile
  /** From this score on, the profile `balanced` runs the second model too. */
  suspicion: number
  /** Processor time for one picture. Views that are left then are not classified, and the report says so. */
  budgetMs: number
}

/** The first request to an image process is `open`; each further one is a picture. */
export type Request = ({ kind: 'open' } & Opening) | { kind: 'classify'; bytes: number }

export type Answer =
  /** Versions of the libraries that scores depend on. */
  { opened: { versions: Record<string, string> } } | { report: ImageReport } | { abandoned: true } | { failure: string }
