import { MIMEType } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../domain/problem.ts'

/** The media type of the body, when it is the one this endpoint takes; refused otherwise, also when there is none. */
export function requireMediaType(
  request: FastifyRequest,
  wanted: 'application/json' | 'multipart/form-data',
): MIMEType {
  const given = request.headers['content-type']
  const type = given === undefined ? undefined : findMediaType(given)
  if (type?.essence !== wanted) {
    throw unsupported(
      `This endpoint takes ${wanted}, not ${given === undefined ? 'a body without Content-Type' : 'this type'}.`,
    )
  }
  const charset = type.params.get('charset')
  if (wanted === 'application/json' && charset !== null && !/^utf-?8$/i.test(charset)) {
    throw unsupported('JSON is read as UTF-8; send it in that charset.')
  }
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('The body must be sent without Content-Encoding.')
  }
  return type
}

const unsupported = (detail: string) => new Problem({ kind: 'unsupported-media-type', detail })

function findMediaType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text)
  } catch {
    return undefined
  }
}
