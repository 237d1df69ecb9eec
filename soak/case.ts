/** One fault or one load, and what was seen. It throws when something that must hold did not. */
export type Case = {
  /** A line for people. */
  about: string
  /** What was observed, in a few words and figures. */
  run(): Promise<string>
}
