import type { ImageReport } from '../../domain/ports/engines.ts'

export type Profile = 'fast' | 'balanced' | 'thorough'

/** How pictures are looked at, and with what. */
export type Opening = {
  /** Paths. The large one is not there in the profile that does without. */
  models: { small: string; large: string | undefined }
  profile: Profile
  /** `balanced` asks the large model too, from this on. */
  suspicion: number
}

/** What an image process is asked: to open first, and then one picture after the other. */
export type Request = ({ ask: 'open' } & Opening) | { ask: 'classify'; bytes: number }

export type Answer =
  /** Of the libraries, whose changes change scores. */
  { opened: { versions: Record<string, string> } } | { report: ImageReport } | { abandoned: true } | { failure: string }
