import { toConnectionFailed } from './connection-failed.ts'
import { toFormData } from './form-data.ts'
import type { Form, HttpRequest, HttpResponse, Transport } from './transport.ts'

/** The part of XMLHttpRequest that this transport uses; the types of Node do not include it. */
export type Xhr = {
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  send(body: FormData): void
  abort(): void
  getResponseHeader(name: string): string | null
  status: number
  responseText: string
  onload: (() => void) | null
  onerror: (() => void) | null
  upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null }
}

/** Sends files from a page with progress, which fetch does not report. Other requests go to `fetchTransport`. */
export function makeXhrTransport(newXhr: () => Xhr, fetchTransport: Transport): Transport {
  return async (request, signal) => {
    const { body } = request
    if (typeof body !== 'object') return await fetchTransport(request, signal)
    const data = await toFormData(body)
    const size = (await body.content.toBlob()).size
    if (signal.aborted) throw signal.reason
    return await send(newXhr(), request, { ...body, data, size }, signal)
  }
}

function send(
  xhr: Xhr,
  { method, url, headers }: HttpRequest,
  { onSent, data, size }: Form & { data: FormData; size: number },
  signal: AbortSignal,
): Promise<HttpResponse> {
  return new Promise<HttpResponse>((resolve, reject) => {
    xhr.open(method, url)
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value)
    // The content is the last part of the form, which is a little larger than the content.
    xhr.upload.onprogress = ({ loaded, total }) => onSent(Math.max(0, Math.min(size, size + loaded - total)))
    xhr.onerror = () => reject(toConnectionFailed(url, new Error('XMLHttpRequest failed')))
    xhr.onload = () =>
      resolve({
        status: xhr.status,
        findHeader: (name) => xhr.getResponseHeader(name) ?? undefined,
        text: xhr.responseText,
      })
    signal.addEventListener('abort', () => {
      xhr.abort()
      reject(signal.reason)
    })
    xhr.send(data)
  })
}
