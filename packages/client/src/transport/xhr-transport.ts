import { toConnectionFailed } from './connection-failed.ts'
import { toFormData } from './form-data.ts'
import type { Form, Incoming, Outgoing, Transport } from './transport.ts'

/** As much of it as is used here; Node does not have its types. */
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

/** Files from a page: fetch tells nothing of its progress, and sends streams by http/2 alone. */
export function makeXhrTransport(newXhr: () => Xhr, fetching: Transport): Transport {
  return async (outgoing, signal) => {
    const { body } = outgoing
    if (typeof body !== 'object') return await fetching(outgoing, signal)
    const data = await toFormData(body)
    const size = (await body.content.toBlob()).size
    if (signal.aborted) throw signal.reason
    return await send(newXhr(), outgoing, { ...body, data, size }, signal)
  }
}

function send(
  xhr: Xhr,
  { method, url, headers }: Outgoing,
  { onSent, data, size }: Form & { data: FormData; size: number },
  signal: AbortSignal,
): Promise<Incoming> {
  return new Promise<Incoming>((resolve, reject) => {
    xhr.open(method, url)
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value)
    // The form is a little larger than its content, which stands at its end.
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
