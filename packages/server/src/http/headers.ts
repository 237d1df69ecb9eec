import type { IncomingMessage } from 'node:http'

/** Every value of a header as it came, because Node joins or drops the second of two. */
export function listHeader(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] as string
    if (candidate.length === name.length && candidate.toLowerCase() === name) values.push(rawHeaders[i + 1] as string)
  }
  return values
}
