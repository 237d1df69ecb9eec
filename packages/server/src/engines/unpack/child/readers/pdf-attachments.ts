import type { Source } from '../source.ts'
import { type Objects, readValueAt } from './pdf-objects.ts'
import { isDictionary, isReference, type PdfValue } from './pdf-values.ts'
import { listMatches } from './text-lines.ts'

/** The key of the streams that a description of a file names, with its letters as they are or as escapes. */
const embeddedFiles = /\/(?:E|#45)(?:F|#46)(?=[\0\s<\d%])/g
const longestKey = 8
const maxAttachments = 10_000
const maxDepth = 8

/**
 * The numbers of the objects that are attachments. Their type is optional, so that an attachment may look like any other
 * stream.
 */
export async function listAttachments(source: Source, objects: Objects): Promise<Set<number>> {
  const found = new Set<number>()

  async function addStreams(value: PdfValue) {
    for (const resolved of await objects.resolve(value)) {
      if (!isDictionary(resolved)) continue
      for (const stream of [...resolved.values()].flat()) if (isReference(stream)) found.add(stream.object)
    }
  }

  async function search(value: PdfValue, depth = 0) {
    if (depth > maxDepth || found.size > maxAttachments) return
    if (Array.isArray(value)) for (const item of value) await search(item, depth + 1)
    if (!isDictionary(value)) return
    for (const [key, items] of value) {
      for (const item of items) await (key === 'EF' ? addStreams(item) : search(item, depth + 1))
    }
  }

  for (const at of listMatches(source, embeddedFiles, longestKey)) {
    if (found.size > maxAttachments) break
    const [key = ''] =
      source
        .read(at, at + longestKey)
        .toString('latin1')
        .match(/^\/(?:E|#45)(?:F|#46)/) ?? []
    await addStreams(readValueAt(source, at + key.length))
  }
  for (const values of (await objects.listPacked()).values()) for (const value of values) await search(value)
  return found
}
