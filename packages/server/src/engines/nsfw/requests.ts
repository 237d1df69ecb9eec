import type { ImageReport } from '../../domain/ports/engines.ts'

export type Profile = 'fast' | 'balanced' | 'thorough'

/** The models that an image process opens, and how it uses them. */
export type Opening = {
  /** Paths. The profile `fast` has no large model. */
  models: { small: string; large: string | undefined }
  profile: Profile
  /** From this score on, the profile `balanced` runs the large model too. */
  suspicion: number
}

/** The first request to an image process is `open`; each further one is a picture. */
export type Request = ({ kind: 'open' } & Opening) | { kind: 'classify'; bytes: number }

export type Answer =
  /** Versions of the libraries that scores depend on. */
  { opened: { versions: Record<string, string> } } | { report: ImageReport } | { abandoned: true } | { failure: string }
