import { findOne, listValues, type ParsedHeaders } from '../../../domain/icap/icap-headers.ts'

/** The description of a service in the response of its server to OPTIONS. */
export type IcapOptions = {
  /** Bytes of a preview; undefined when the service takes none. */
  preview: number | undefined
  /** Extensions of files, or `*`, that are sent with a preview; undefined when the server does not say. */
  previewed: string[]
  /** Extensions of files, or `*`, that are sent without one. */
  complete: string[]
  answers204: boolean
  maxConnections: number | undefined
  service: string | undefined
  tag: string | undefined
  /** The time, by `performance.now()`, until which the description counts. */
  validUntil: number
}

const maxTtlSeconds = 3600
const maxPreviewBytes = 256 * 1024

export function toOptions(headers: ParsedHeaders): IcapOptions {
  const ttl = toNumber(findOne(headers, 'options-ttl')) ?? maxTtlSeconds
  const preview = toNumber(findOne(headers, 'preview'))
  return {
    preview: preview === undefined ? undefined : Math.min(preview, maxPreviewBytes),
    previewed: listValues(headers, 'transfer-preview'),
    // A file that the server wants to ignore is sent all the same: only an answer to the content says that it is clean.
    complete: [...listValues(headers, 'transfer-complete'), ...listValues(headers, 'transfer-ignore')],
    answers204: listValues(headers, 'allow').includes('204'),
    maxConnections: toNumber(findOne(headers, 'max-connections')) || undefined,
    service: headers.get('service')?.[0],
    tag: findTag(headers),
    validUntil: performance.now() + Math.min(ttl, maxTtlSeconds) * 1000,
  }
}

export const findTag = (headers: ParsedHeaders): string | undefined =>
  headers.get('istag')?.[0]?.replaceAll(/^"|"$/g, '')

/** The bytes of the preview with which the server wants this file; undefined for none. */
export function choosePreview({ preview, previewed, complete }: IcapOptions, fileName: string): number | undefined {
  if (preview === undefined) return undefined
  const extension = /\.([^.]*)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  if (previewed.includes(extension)) return preview
  if (complete.includes(extension)) return undefined
  return complete.includes('*') && !previewed.includes('*') ? undefined : preview
}

const toNumber = (text: string | undefined) => (text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined)
