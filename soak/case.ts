/** A fault or a load. `run` returns its observations and throws when an invariant does not hold. */
export type Case = {
  /** One line that describes the case. */
  about: string
  /** Observations in a few words and figures. */
  run(): Promise<string>
}
