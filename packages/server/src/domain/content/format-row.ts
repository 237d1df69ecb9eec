/** A container format, recognised by the first bytes. */
export type ContainerFormat = {
  name: string
  /** The name of the format in 7-Zip; undefined when 7-Zip does not read it. */
  unpackAs: string | undefined
  /** A reader of Assay reads the format, alone or beside 7-Zip. */
  hasReader: boolean
  /** All content of the format is encrypted. */
  isEncrypted: boolean
}

export type Magic = { at: number; bytes: Buffer }
export type Row = ContainerFormat & { magics: Magic[]; confirm?: (head: Buffer) => boolean }

/** Whether the head has the bytes of a signature at their place. Most content differs in the first byte already. */
export const hasMagic = (head: Buffer, { at, bytes }: Magic) =>
  head[at] === bytes[0] &&
  head.length >= at + bytes.length &&
  head.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0

/** Whether the head has a byte that no text has. It tells data from a text whose first word is a signature. */
export const isBinary = (head: Buffer) => head.subarray(0, 256).some((byte) => byte < 9)

export const magic = (text: string, at = 0): Magic => ({ at, bytes: Buffer.from(text, 'latin1') })

/** A format that a reader of Assay reads; 7-Zip too where `unpackAs` names it. */
export const openedByReader = (name: string, unpackAs: string | undefined, ...magics: Magic[]): Row => {
  return { name, unpackAs, hasReader: true, isEncrypted: false, magics }
}
/** A format that 7-Zip alone reads. */
export const openedBy7Zip = (name: string, unpackAs: string, ...magics: Magic[]): Row => {
  return { name, unpackAs, hasReader: false, isEncrypted: false, magics }
}
/** A format that nothing here reads. */
export const openedByNone = (name: string, ...magics: Magic[]): Row => {
  return { name, unpackAs: undefined, hasReader: false, isEncrypted: false, magics }
}
