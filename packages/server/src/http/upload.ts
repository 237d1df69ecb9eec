import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import busboy from 'busboy'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ContentStore, ContentWriter } from '../domain/ports/content-store.ts'
import { malformed, Problem } from '../domain/problem.ts'
import type { Upload, UploadedFile } from '../domain/scans/submission.ts'
import { readBody } from './body.ts'
import { requireMediaType } from './media-type.ts'
import { newDelimiterCheck } from './multipart-delimiters.ts'

const textFields = ['file_name', 'callback_url'] as const
type TextField = (typeof textFields)[number]
/** A text field that came as a file part: there is a value, and it is no string. */
const notText = Symbol('not text')

const limits = { fields: 100, files: 10, parts: 110, fieldSize: 64 * 1024, fieldNameSize: 256, headerPairs: 100 }
const closeTimeoutMs = 2000

/**
 * Streams a form once, its file straight into the store. The first byte over the limit ends the reading; what is known
 * by then comes back. Whoever gets the upload releases its content; when this throws, nothing is left of it.
 */
export async function readUpload(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: { contents: ContentStore; maxBytes: number },
): Promise<Upload> {
  const boundary = requireMediaType(request, 'multipart/form-data').params.get('boundary')
  if (boundary === null || boundary === '') throw malformed('The Content-Type names no boundary.')
  const delimiters = newDelimiterCheck(boundary)
  const parser = openParser(request.raw)
  const form = makeForm(deps, (error) => parser.destroy(error))
  // Rejects when the parser does. Caught at once, because it may fail while we wait for the next chunk.
  const finished = new Promise<void>((resolve, reject) => parser.once('close', resolve).once('error', reject))
  finished.catch(() => {})
  parser.on('file', form.addFile).on('field', form.addField)
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => parser.destroy(malformed('The form has too many parts.')))
  }
  try {
    for await (const chunk of readBody(request, reply)) {
      if (!delimiters.add(chunk)) throw malformed('A line of the content begins like the boundary of the form.')
      if (parser.destroyed) break
      if (!parser.write(chunk)) await Promise.race([once(parser, 'drain'), finished])
      if (form.isOver()) return await form.toUpload()
    }
    parser.end()
    await within(closeTimeoutMs, finished)
    return await form.toUpload()
  } catch (error) {
    await form.abort()
    throw error instanceof Problem || error === form.findFault() ? error : malformed('The form is broken or cut short.')
  } finally {
    parser.removeAllListeners('file').removeAllListeners('field')
    parser.destroy()
  }
}

function openParser(raw: IncomingMessage) {
  try {
    return busboy({ headers: raw.headers, defParamCharset: 'utf8', limits })
  } catch {
    throw malformed('The Content-Type of the form cannot be read.')
  }
}

function makeForm(deps: { contents: ContentStore; maxBytes: number }, giveUp: (fault: Error) => void) {
  const fields: Partial<Record<TextField, unknown>> = {}
  const seen = new Set<string>()
  const repeated = new Set<string>()
  let state: 'missing' | 'complete' | 'too large' = 'missing'
  let writer: ContentWriter | undefined
  let partName: string | undefined
  /** The store failed: our fault, not the client's. */
  let fault: Error | undefined

  const note = (name: string) => (seen.has(name) ? repeated : seen).add(name)
  const fail = (error: Error) => {
    fault = error
    giveUp(error)
  }

  return {
    addField(name: string, value: string) {
      if (!isTextField(name)) return
      note(name)
      fields[name] = value
    },
    addFile(name: string, part: Readable, info: { filename?: string }) {
      // A part that breaks off reports here as well as at the parser.
      part.on('error', () => {})
      note(name)
      if (isTextField(name)) fields[name] = notText
      if (name !== 'file' || repeated.has(name)) {
        part.resume()
        return
      }
      partName = info.filename
      const into = deps.contents.newWriter()
      writer = into
      let bytes = 0
      part.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > deps.maxBytes) state = 'too large'
        if (state === 'too large') return
        const caughtUp = into.write(chunk)
        if (caughtUp === undefined) return
        part.pause()
        caughtUp.then(() => part.resume(), fail)
      })
      part.on('end', () => {
        if (state === 'missing') state = 'complete'
      })
    },
    isOver: () => state === 'too large',
    findFault: () => fault,
    async abort() {
      await writer?.abort()
    },
    async toUpload(): Promise<Upload> {
      const file: UploadedFile = state === 'complete' ? { content: await finish() } : toLack(state)
      if (state === 'too large') await writer?.abort()
      return { fields, file, partName, repeated: [...repeated] }
    },
  }

  async function finish() {
    try {
      return await (writer as ContentWriter).finish()
    } catch (error) {
      fault = error as Error
      throw error
    }
  }
}

const toLack = (state: 'missing' | 'too large'): UploadedFile =>
  state === 'missing' ? { missing: true } : { tooLarge: true }

const isTextField = (name: string): name is TextField => (textFields as readonly string[]).includes(name)

async function within(timeoutMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(malformed('The form is cut short.')), timeoutMs)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
