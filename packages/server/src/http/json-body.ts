import { maxJsonBytes, maxJsonDepth } from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parse } from 'secure-json-parse'
import { malformed, Problem } from '../domain/problem.ts'
import { readBody } from './body.ts'

/** The members of a JSON body; none when it is not an object. */
export async function readJsonBody(request: FastifyRequest, reply: FastifyReply): Promise<Record<string, unknown>> {
  const text = await readText(request, reply)
  if (isTooDeep(text)) throw malformed(`The JSON is nested more than ${maxJsonDepth} levels deep.`)
  let value: unknown
  try {
    value = parse(text, undefined, { protoAction: 'error', constructorAction: 'ignore' })
  } catch {
    throw malformed('The body is not valid JSON.')
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

async function readText(request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const tooLarge = () =>
    new Problem({ kind: 'content-too-large', detail: `The JSON body is larger than ${maxJsonBytes} bytes.` })
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  await readBody(request, reply, (chunk) => {
    bytes += chunk.length
    if (bytes > maxJsonBytes) throw tooLarge()
    chunks.push(chunk)
    return undefined
  })
  try {
    // Takes a byte order mark away, and refuses bytes that are not UTF-8.
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw malformed('The body is not valid UTF-8.')
  }
}

/** Counted before parsing, because a parser that recurses would have done its damage by then. */
function isTooDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (inString) {
      if (c === '\\') i++
      else if (c === '"') inString = false
    } else if (c === '"') inString = true
    else if (c === '{' || c === '[') {
      depth++
      if (depth > maxJsonDepth) return true
    } else if (c === '}' || c === ']') depth--
  }
  return false
}
