import { MIMEType } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { countParams } from '../domain/content/multipart.ts'
import { malformed, Problem } from '../domain/problem.ts'

/** Checks the media type and the encoding of the body. Throws a Problem when the endpoint does not accept them. */
export function requireMediaType(
  request: FastifyRequest,
  expectedType: 'application/json' | 'multipart/form-data',
): MIMEType {
  const contentType = request.headers['content-type']
  const type = contentType === undefined ? undefined : findMediaType(contentType)
  if (contentType !== undefined && type === undefined) throw unsupported('The Content-Type is not a media type.')
  if (type?.essence !== expectedType) {
    throw unsupported(
      `This endpoint takes ${expectedType}, not ${contentType === undefined ? 'a body without Content-Type' : 'this type'}.`,
    )
  }
  const charset = type.params.get('charset')
  if (expectedType === 'application/json' && charset !== null && !/^utf-?8$/i.test(charset)) {
    throw unsupported('Send JSON in the charset UTF-8.')
  }
  requireIdentity(request)
  return type
}

function requireIdentity({ headers }: FastifyRequest) {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('Send the body without Content-Encoding.')
  }
}

/**
 * The Content-Type as nearly every client writes it, read by one expression. The class has the characters that may be
 * in a boundary (RFC 2046, bchars) and also in a value without quotes (RFC 9110, token), so any other parser agrees.
 * Other boundaries, in quotes or not, are left to MIMEType.
 */
const usualFormType = /^multipart\/form-data; ?boundary=([\w'+.-]+)$/i

/** Returns the boundary of a form. Throws a Problem when the body is no form, or its boundary is not certain. */
export function requireBoundary(request: FastifyRequest): string {
  const contentType = request.headers['content-type'] ?? ''
  const usual = usualFormType.exec(contentType)?.[1]
  if (usual !== undefined) {
    requireIdentity(request)
    return usual
  }
  const boundary = requireMediaType(request, 'multipart/form-data').params.get('boundary')
  if (boundary === null || boundary === '') throw malformed('The Content-Type has no boundary.')
  if (countParams(contentType, 'boundary') > 1) throw malformed('The Content-Type has more than one boundary.')
  return boundary
}

const unsupported = (detail: string) => new Problem({ kind: 'unsupported-media-type', detail })

function findMediaType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text)
  } catch {
    return undefined
  }
}
