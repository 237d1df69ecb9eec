import type { ScanKind } from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Content } from '../domain/content/content.ts'
import { newMultipartParser, type PartHeader, type PartSink } from '../domain/content/multipart.ts'
import type { ContentWriter, WriterOptions } from '../domain/ports/content-store.ts'
import { malformed } from '../domain/problem.ts'
import type { Upload, UploadedFile } from '../domain/scans/check-submission.ts'
import { readBody } from './body.ts'
import { requireBoundary } from './request.ts'

const textFields = ['file_name', 'callback_url'] as const
type TextField = (typeof textFields)[number]
/** The value of a text field that was sent as a file part; validation rejects it because it is not a string. */
const notText = Symbol('not text')

const maxParts = 110
const maxFiles = 10
const maxFieldBytes = 64 * 1024
/** Bytes to assume for the rest of the form when estimating the size of its file. */
const formOverheadBytes = 64 * 1024
/** Bytes of a form beside its file at most; an announced length beyond the limit and these is refused unread. */
const maxFormOverheadBytes = 1024 * 1024
const tooLargeUpload: Upload<never> = { fields: {}, file: { tooLarge: true }, partName: undefined, repeated: [] }

/**
 * Reads a form in one pass and streams its file into the content store. Reading stops at the first byte over the limit;
 * the result then has the fields that came before. The caller releases the content; after an error nothing is left to
 * release.
 */
export async function readUpload<C extends Content>(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: Deps<C>,
): Promise<Upload<C>> {
  const boundary = requireBoundary(request)
  const announcedBytes = Number(request.raw.headers['content-length'] ?? 0)
  if (announcedBytes > deps.maxBytes + maxFormOverheadBytes) return tooLargeUpload
  const expectedBytes = announcedBytes - formOverheadBytes
  const form = makeForm({ ...deps, expectedBytes })
  const parser = newMultipartParser({ boundary, maxParts, openPart: form.openPart })
  try {
    await readBody(request, reply, (chunk) => {
      parser.push(toOwnedChunk(chunk))
      return form.isTooLarge() ? 'stop' : form.takePause()
    })
    if (!form.isTooLarge()) parser.finish()
    return await form.toUpload()
  } catch (error) {
    await form.abort()
    throw error
  }
}

/** The writer may take over the memory of a chunk, so a chunk that shares its memory is copied. */
const toOwnedChunk = (chunk: Buffer) => (chunk.byteLength === chunk.buffer.byteLength ? chunk : Buffer.from(chunk))

type Deps<C> = { contents: Contents<C>; kind: ScanKind; maxBytes: number; accountId: string }
export type Contents<C> = { newWriter(options: WriterOptions): ContentWriter<C> }

function makeForm<C>({ contents, kind, maxBytes, accountId, expectedBytes }: Deps<C> & { expectedBytes: number }) {
  const fields: Partial<Record<TextField, unknown>> = {}
  const fieldNames: string[] = []
  let state: 'missing' | 'complete' | 'too large' = 'missing'
  let writer: ContentWriter<C> | undefined
  let partName: string | undefined
  let files = 0
  /** Pending until the content store has caught up with the upload. */
  let pause: Promise<void> | undefined

  return {
    openPart(header: PartHeader): PartSink {
      const { name } = header
      if (header.isFile) files++
      if (files > maxFiles) throw malformed('The form has too many parts.')
      if (name !== 'file' && !isTextField(name)) return ignoringSink
      fieldNames.push(name)
      if (!header.isFile) return isTextField(name) ? openField(name, header.charset) : ignoringSink
      if (isTextField(name)) fields[name] = notText
      if (name !== 'file' || writer !== undefined) return ignoringSink
      partName = header.filename
      return openFile(contents.newWriter({ expectedBytes, accountId, kind, ownsMemory: true }))
    },
    isTooLarge: () => state === 'too large',
    takePause() {
      const promise = pause
      pause = undefined
      return promise
    },
    async abort() {
      await writer?.abort()
    },
    async toUpload(): Promise<Upload<C>> {
      const file: UploadedFile<C> =
        state === 'complete' && writer !== undefined ? { content: await writer.finish() } : toMissingFile(state)
      if (state === 'too large') await writer?.abort()
      return { fields, file, partName, repeated: listRepeated(fieldNames) }
    },
  }

  function openFile(contentWriter: ContentWriter<C>): PartSink {
    writer = contentWriter
    let bytes = 0
    return {
      write(chunk) {
        bytes += chunk.length
        if (bytes > maxBytes) state = 'too large'
        if (state === 'too large') return
        pause = contentWriter.write(chunk) ?? pause
      },
      end() {
        if (state === 'missing') state = 'complete'
      },
    }
  }

  function openField(name: TextField, charset: string | undefined): PartSink {
    const chunks: Buffer[] = []
    let bytes = 0
    return {
      write(chunk) {
        // A field that is cut here is still longer than any value may be, and is refused as such.
        if (bytes < maxFieldBytes) chunks.push(chunk.subarray(0, maxFieldBytes - bytes))
        bytes += chunk.length
      },
      end() {
        fields[name] = decode(Buffer.concat(chunks), charset)
      },
    }
  }
}

const listRepeated = (names: string[]): string[] =>
  names.filter((name, at) => names.indexOf(name) === at && names.lastIndexOf(name) > at)

const ignoringSink: PartSink = { write() {}, end() {} }

const toMissingFile = (state: string): UploadedFile<never> =>
  state === 'too large' ? { tooLarge: true } : { missing: true }

const isTextField = (name: string): name is TextField => (textFields as readonly string[]).includes(name)

function decode(bytes: Buffer, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString('utf8')
  }
}
