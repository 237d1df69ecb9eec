import { newMultipart } from '../multipart.ts'
import { toConnectionFailed } from './connection-failed.ts'
import { toFormData } from './form-data.ts'
import { type Form, type Incoming, maxAnswerBytes, type Outgoing, type Transport } from './transport.ts'

type Fetch = typeof globalThis.fetch

/** For platforms that have no better way, and for callers who bring a fetch of their own. */
export function makeFetchTransport(fetch: Fetch, newKey: () => string): Transport {
  async function send({ method, url, headers }: Outgoing, body: Body, signal: AbortSignal): Promise<Incoming> {
    const init = {
      method,
      headers: { ...headers, ...body.headers },
      redirect: 'manual' as const,
      signal,
      ...(body.value !== undefined && { body: body.value }),
      // A body that is a stream needs it.
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

  return async (outgoing, signal) => {
    const { body } = outgoing
    if (typeof body !== 'object') return await send(outgoing, body === undefined ? {} : { value: body }, signal)
    if (!body.content.isWhole) return await send(outgoing, toStream(body, newKey()), signal)
    // Only http/2 lets a page send a stream. What a blob's progress is, fetch does not tell.
    const answer = await send(outgoing, { value: await toFormData(body) }, signal)
    body.onSent(body.content.length ?? 0)
    return answer
  }
}

type Body = {
  value?: string | FormData | ReadableStream<Uint8Array>
  headers?: Record<string, string>
  /** Why the content could not be read on, if that is why the request failed. */
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
      // The next one is asked for when this one was taken.
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
    if (text.length > maxAnswerBytes) {
      await reader.cancel()
      return text
    }
  }
}
