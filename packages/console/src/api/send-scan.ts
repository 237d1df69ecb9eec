import { operations, type ScanKind, type ScanMode, type ScanResult } from '@assay/contract'
import { consoleScanPath, csrfHeader } from '@assay/contract/admin'
import { ApiError, getCsrfToken, toApiError, unreachableMessage } from './call.ts'
import { parseMarked } from './marked-json.ts'

export type ScanRequest = {
  kind: ScanKind
  mode: ScanMode
  source: { does: 'file'; file: File } | { does: 'url'; url: string }
  callbackUrl?: string | undefined
}

/** The result of a synchronous scan, or the id of a background scan. */
export type ScanResponse = ScanResult | { id: string }

type SendOptions = { onSent: (share: number) => void; signal: AbortSignal }

/** Sends a scan with XMLHttpRequest, because fetch does not report upload progress. */
export function sendScan(scan: ScanRequest, { onSent, signal }: SendOptions): Promise<ScanResponse> {
  const { body, type } = toBody(scan)
  const request = new XMLHttpRequest()
  return new Promise<ScanResponse>((resolve, reject) => {
    request.open('POST', consoleScanPath + findOperation(scan).path.slice('/v1'.length))
    request.setRequestHeader(csrfHeader, getCsrfToken())
    if (type !== undefined) request.setRequestHeader('Content-Type', type)
    request.upload.onprogress = ({ loaded, total }) => onSent(total === 0 ? 1 : loaded / total)
    request.upload.onload = () => onSent(1)
    request.onerror = () => reject(new ApiError(unreachableMessage, { status: 0 }))
    request.onabort = () => reject(signal.reason)
    request.onload = () => {
      const { status, responseText } = request
      if (status < 300) return resolve(parseMarked(responseText) as ScanResponse)
      reject(toApiError(status, responseText, request.getResponseHeader('Retry-After')))
    }
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body)
  })
}

/** The operation of the API that performs a scan. */
export function findOperation({ kind, mode, source }: Pick<ScanRequest, 'kind' | 'mode' | 'source'>) {
  const operation = operations.find(
    (one) => one.does === source.does && 'mode' in one && one.kind === kind && one.mode === mode,
  )
  if (operation === undefined) throw new Error('No operation performs this scan')
  return operation
}

function toBody({ source, callbackUrl }: ScanRequest): { body: FormData | string; type?: string } {
  const callback = callbackUrl === undefined || callbackUrl === '' ? {} : { callback_url: callbackUrl }
  if (source.does === 'url') {
    return { body: JSON.stringify({ file_url: source.url, ...callback }), type: 'application/json' }
  }
  const form = new FormData()
  for (const [name, value] of Object.entries(callback)) form.append(name, value)
  form.append('file', source.file, source.file.name)
  return { body: form }
}
