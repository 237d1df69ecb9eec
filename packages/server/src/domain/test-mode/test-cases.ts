import type { ScanKind } from '@assay/contract'
import type { FetchFailure } from '../ports/content-store.ts'
import type { Doubt, ImageReport } from '../ports/engines.ts'

type Unscanned = Extract<ImageReport, { unscanned: string }>['unscanned']
export type ErrorReason = Doubt | FetchFailure | Unscanned | 'EngineFailed'

export type TestEnd = 'clean' | 'threat' | 'pornography' | 'sexy' | { error: ErrorReason }

/** Whether the content comes with the request or by its URL. */
export type TestSource = 'file' | 'url'

/** Where a case can be asked for: what cannot happen there in earnest cannot in a test. */
type Reach = { kinds: readonly ScanKind[]; sources: readonly TestSource[] }

export type TestCase = Reach & {
  /** After `assay-test-` in the name of a file, or at the end of a URL. */
  name: string
  end: TestEnd
  /** Before it ends so; at once where there is none. */
  delayMs?: { sync: number; async: number }
}

const anywhere: Reach = { kinds: ['malware', 'nsfw_image'], sources: ['file', 'url'] }
const pictures: Reach = { ...anywhere, kinds: ['nsfw_image'] }
const archives: Reach = { ...anywhere, kinds: ['malware'] }
const downloads: Reach = { ...anywhere, sources: ['url'] }

/** Does not compile while a reason is missing. */
const errors: Record<ErrorReason, Reach> = {
  EncryptedContent: archives,
  UnsupportedContainer: archives,
  UnsupportedImage: pictures,
  ScanLimitExceeded: anywhere,
  DownloadFailed: downloads,
  TooLarge: downloads,
  EmptyContent: downloads,
  EngineFailed: anywhere,
}

/** Everything that a test can ask for by name. docs/test-mode.md has the same rows, and a test compares the two. */
export const testCases: readonly TestCase[] = [
  { name: 'clean', end: 'clean', ...anywhere },
  { name: 'threat', end: 'threat', ...anywhere },
  { name: 'pornography', end: 'pornography', ...pictures },
  { name: 'sexy', end: 'sexy', ...pictures },
  { name: 'error', end: { error: 'ScanLimitExceeded' }, ...anywhere },
  ...(Object.entries(errors) as [ErrorReason, Reach][]).map(([error, reach]) => ({
    ...{ name: toName(error), end: { error }, ...reach },
  })),
  { name: 'slow', end: 'clean', delayMs: { sync: 5000, async: 5000 }, ...anywhere },
  { name: 'pending', end: 'clean', delayMs: { sync: 0, async: 60_000 }, ...anywhere },
]

/** `EncryptedContent` is asked for as `encrypted-content`. */
function toName(reason: ErrorReason): string {
  return reason.replaceAll(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase()
}
