import { eicar } from '../support/archives.ts'

/**
 * The verdict that a sample must get.
 *
 * - `opened`: `threat` with EICAR inside, `clean` with a harmless text.
 * - `ambiguous`: tools disagree about the content. `threat` or `error` with EICAR, `clean` or `error` with a harmless text.
 * - `damaged`: a part is missing. `threat` or `error` with EICAR, `error` with a harmless text.
 * - `reported`: `threat` with either content, because ClamAV reports the way in which the container is written.
 * - `encrypted`: `Error:EncryptedContent`.
 * - `unopened`: `Error:UnsupportedContainer`.
 */
export type Expectation = 'opened' | 'ambiguous' | 'damaged' | 'reported' | 'encrypted' | 'unopened'

/** A file to scan. Its name is unique within the form and has the usual extension. */
export type Sample = {
  name: string
  bytes: Buffer
  /** Expectation of this sample, when it differs from that of its form. */
  expectation?: Expectation
}

/** A way to put a file into another one. */
export type Form = {
  name: string
  family: string
  expectation: Expectation
  /** Programs that `make` runs, as listed in tools.ts. Without them the form is skipped. */
  needs: readonly string[]
  /** Names of extractors that fit this form alone. All forms are tried with the extractors for everything. */
  extractors?: readonly string[]
  /**
   * Wraps the payload, called `payloadName`. `workdir` is empty and removed afterwards. The same payload length gives the
   * same names in the same order, so that the samples with EICAR and with a harmless text form pairs. With `count` a form
   * may make no more than that many samples.
   */
  make(payload: Buffer, payloadName: string, workdir: string, count?: number): Sample[]
}

/** A program that unpacks a sample into the current directory. */
export type Extractor = {
  name: string
  program: string
  args: (file: string) => string[]
  /** The program reads the sample from its standard input. */
  isFed?: boolean
  /** The program writes the content to its standard output. */
  printsContent?: boolean
  /** The program tries several readers, each of which writes to a directory that has its name. */
  hasReaders?: boolean
  /** Extractor of the inner layers, when it is another one. */
  inner?: string
  /** Only forms that name this extractor are tried with it. */
  isSpecial?: boolean
}

/** EICAR and a harmless text of the same length. */
export type PayloadPair = { eicar: Buffer; harmless: Buffer }

const harmlessText =
  'A harmless text that is as long as the test virus and that no signature of any engine knows, whatever its length is. '

const newPair = (bytes: Buffer): PayloadPair => ({
  eicar: bytes,
  harmless: Buffer.from(harmlessText.repeat(2).slice(0, bytes.length)),
})

/** The test virus alone, and followed by blanks to the 128 bytes that its definition allows. */
export const payloads: [PayloadPair, ...PayloadPair[]] = [
  newPair(eicar),
  newPair(Buffer.concat([eicar, Buffer.alloc(128 - eicar.length, ' ')])),
]

export const payloadName = 'payload.com'
