/**
 * The place that a sealed value belongs to: its table and column, or the kind of content, and the ids of its row. A
 * value that is moved anywhere else does not open.
 */
export type Binding = readonly [place: string, ...ids: string[]]

/** Encrypts secrets with the master key before they are stored. */
export type Sealer = {
  seal(clear: Buffer, binding: Binding): Promise<Buffer>
  /** Throws when the value was sealed for something else or with another master key, or was changed. */
  open(sealed: Buffer, binding: Binding): Promise<Buffer>
}
