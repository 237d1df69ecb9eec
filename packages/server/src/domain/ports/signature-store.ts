/** A signature or rule file in the database. `sha256` is hexadecimal. `source` is null for a file of the operator. */
export type SharedFile = { name: string; bytes: number; sha256: string; changedAt: Date; source: string | null }

/** A file to save. `read` returns all of its content. */
export type NewFile = { name: string; read(): Promise<Buffer> }

/** The operator's signature and rule files, which every node with engines uses. */
export type SignatureStore = {
  /** All files, by name. */
  listFiles(): Promise<SharedFile[]>
  /** Throws an `OperatorMistake` for a name or a size that `saveFiles` would refuse, before anything is read. */
  requireStorable(files: { name: string; bytes: number }[]): void
  /**
   * Saves all files, or none; replaces files of the same name, and notifies all nodes. `read` is called for one file
   * after the other. Throws an `OperatorMistake` for a name or a size that is not allowed.
   */
  saveFiles(files: NewFile[]): Promise<SharedFile[]>
  /** Returns false when there is no such file. */
  removeFile(name: string): Promise<boolean>
  /** Yields the content in pieces, and ends early when the file has been changed or removed meanwhile. */
  readContent(file: SharedFile): AsyncIterable<Buffer>
}
