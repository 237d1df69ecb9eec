import { operations, type ScanKind, type ScanMode, type ScanResult } from '@assay/contract'
import { consoleScanPath, csrfHeader } from '@assay/contract/admin'
import { ApiError, getCsrfToken, toApiError } from './call.ts'

export type ScanOrder = {
  kind: ScanKind
  mode: ScanMode
  source: { does: 'file'; file: File } | { does: 'url'; url: string }
  callbackUrl?: string | undefined
}

/** Of a scan that waits: its result. Of one in the background: its id. */
export type ScanSent = ScanResult | { id: string }

type Watch = { onSent: (share: number) => void; signal: AbortSignal }

/** By XMLHttpRequest, because nothing else in a browser tells how much of a file has been sent. */
export function sendScan(order: ScanOrder, { onSent, signal }: Watch): Promise<ScanSent> {
  const { body, type } = toBody(order)
  const request = new XMLHttpRequest()
  return new Promise<ScanSent>((resolve, reject) => {
    request.open('POST', consoleScanPath + findOperation(order).path.slice('/v1'.length))
    request.setRequestHeader(csrfHeader, getCsrfToken())
    if (type !== undefined) request.setRequestHeader('Content-Type', type)
    request.upload.onprogress = ({ loaded, total }) => onSent(total === 0 ? 1 : loaded / total)
    request.upload.onload = () => onSent(1)
    request.onerror = () =>
      reject(new ApiError('The service broke off, or does not answer. Is it running?', { status: 0 }))
    request.onabort = () => reject(signal.reason)
    request.onload = () => {
      const { status, responseText } = request
      if (status < 300) return resolve(JSON.parse(responseText))
      reject(toApiError(status, responseText, request.getResponseHeader('Retry-After')))
    }
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body)
  })
}

/** The operation of the interface that an order is for. */
export function findOperation({ kind, mode, source }: Pick<ScanOrder, 'kind' | 'mode' | 'source'>) {
  const found = operations.find(
    (one) => one.does === source.does && 'mode' in one && one.kind === kind && one.mode === mode,
  )
  if (found === undefined) throw new Error('There is no such operation')
  return found
}

function toBody({ source, callbackUrl }: ScanOrder): { body: FormData | string; type?: string } {
  const callback = callbackUrl === undefined || callbackUrl === '' ? {} : { callback_url: callbackUrl }
  if (source.does === 'url') {
    return { body: JSON.stringify({ file_url: source.url, ...callback }), type: 'application/json' }
  }
  const form = new FormData()
  for (const [name, value] of Object.entries(callback)) form.append(name, value)
  form.append('file', source.file, source.file.name)
  return { body: form }
}
