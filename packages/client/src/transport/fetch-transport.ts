import { newMultipart } from '../multipart.ts'
import { toConnectionFailed } from './connection-failed.ts'
import { toFormData } from './form-data.ts'
import { type Form, type HttpRequest, type HttpResponse, maxResponseBytes, type Transport } from './transport.ts'

type Fetch = typeof globalThis.fetch

/** Transport for platforms without a better one, and for callers that pass their own fetch. */
export function makeFetchTransport(fetch: Fetch, newKey: () => string): Transport {
  async function send({ method, url, headers }: HttpRequest, body: Body, signal: AbortSignal): Promise<HttpResponse> {
    const init = {
      method,
      headers: { ...headers, ...body.headers },
      redirect: 'manual' as const,
      signal,
      ...(body.value !== undefined && { body: body.value }),
      // fetch requires this for a body that is a stream.
      duplex: 'half' as const,
    }
    try {
      const response = await fetch(url, init)
      return {
        status: response.type === 'opaqueredirect' ? 302 : response.status,
        findHeader: (name) => response.headers.get(name) ?? undefined,
        text: await readText(response),
      }
    } catch (error) {
      throw body.findFailure?.() ?? toConnectionFailed(url, error)
    }
  }

  return async (request, signal) => {
    const { body } = request
    if (typeof body !== 'object') return await send(request, body === undefined ? {} : { value: body }, signal)
    if (!body.content.isInMemory) return await send(request, toStream(body, newKey()), signal)
    // Pages can send a stream over HTTP/2 only, and fetch does not report the progress of a Blob.
    const response = await send(request, { value: await toFormData(body) }, signal)
    body.onSent(body.content.length ?? 0)
    return response
  }
}

type Body = {
  value?: string | FormData | ReadableStream<Uint8Array>
  headers?: Record<string, string>
  /** The error of the content, if reading it made the request fail. */
  findFailure?(): unknown
}

function toStream(form: Form, boundary: string): Body {
  const multipart = newMultipart(form, boundary)
  let failure: unknown
  const chunks = (async function* () {
    yield multipart.head
    let sent = 0
    for await (const chunk of multipart.readContent()) {
      yield chunk
      // fetch requests the next chunk after it has sent this one.
      sent += chunk.length
      form.onSent(sent)
    }
    yield multipart.tail
  })()
  const value = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value: chunk } = await chunks.next()
          if (done) controller.close()
          else controller.enqueue(chunk)
        } catch (error) {
          failure = error
          controller.error(error)
        }
      },
      async cancel() {
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
  return { value, headers: { 'Content-Type': multipart.type }, findFailure: () => failure }
}

async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    text += decoder.decode(value, { stream: true })
    if (text.length > maxResponseBytes) {
      await reader.cancel()
      return text
    }
  }
}
