/** `UnsupportedImage` when it cannot be decoded, `ScanLimitExceeded` when it takes more than we give. */
export type Unscanned = { unscanned: 'UnsupportedImage' | 'ScanLimitExceeded'; reason: string }

/** Thrown inside this folder only: `openPicture` turns it into a value. */
export class Refusal extends Error {
  readonly unscanned: Unscanned['unscanned']

  constructor(unscanned: Unscanned['unscanned'], reason: string) {
    super(reason)
    this.unscanned = unscanned
  }
}

export const newUnsupported = (reason: string) => new Refusal('UnsupportedImage', reason)

export const newOverLimit = (reason: string) => new Refusal('ScanLimitExceeded', reason)
