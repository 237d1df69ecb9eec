import { type Operation, type ProblemKind, problemKinds, type ScanKind, type ScanMode } from '@assay/contract'
import { statusOf, toProblemDetails } from './problem-response.ts'

const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const hashes = {
  hash_sha1: '3395856ce81f2b7382dee72602f798b642f14140',
  hash_sha256: '275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f',
}
const times = { created_at: '2026-01-31T09:30:00.000Z', completed_at: '2026-01-31T09:30:00.042Z' }

const malwareResult = {
  id,
  scan_type: 'malware',
  status: 'threat',
  content_length: 68,
  content_type: 'text/plain',
  signals: ['Virus:Eicar-Test-Signature'],
  metadata: hashes,
  ...times,
  content_name: 'eicar.com',
}

const imageResult = {
  id,
  scan_type: 'nsfw_image',
  status: 'clean',
  content_length: 48213,
  content_type: 'image/jpeg',
  signals: [],
  metadata: {
    ...hashes,
    classification_clean: '0.9921',
    classification_pornography: '0.0031',
    classification_sexy: '0.0048',
  },
  ...times,
  content_name: 'holiday.jpg',
}

export const examples = {
  receipt: { id },
  result: (kind: ScanKind) => (kind === 'malware' ? malwareResult : imageResult),
  account: {
    plan: 'standard',
    credit_limit: 100000,
    credit_remaining: 99958,
    created_date: '2026-01-31T09:00:00.000Z',
    period_start_date: '2026-01-31T09:00:00.000Z',
    period_end_date: '2026-02-28T09:00:00.000Z',
  },
  urlCommand: (kind: ScanKind, mode: ScanMode) => ({
    file_url: kind === 'malware' ? 'https://example.com/setup.exe' : 'https://example.com/holiday.jpg',
    file_name: kind === 'malware' ? 'setup.exe' : 'holiday.jpg',
    ...(mode === 'async' ? { callback_url: 'https://example.com/hooks/assay' } : {}),
  }),
  problem(kind: ProblemKind, operation?: Operation) {
    const context = {
      origin: 'https://scan.example.com',
      instance: operation?.path.replace('{id}', id) ?? '/v1/malware/scan/file',
      traceId: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }
    if (kind === 'validation') return toProblemDetails({ kind, errors: toErrors(operation) }, context)
    if (kind === 'rate-limited') return toProblemDetails({ kind, retryAfterSeconds: 17 }, context)
    const { title, meaning: detail } = problemKinds[kind]
    return { type: `${context.origin}/problems/${kind}`, title, status: statusOf[kind], detail, ...toRest(context) }
  },
}

const toRest = ({ instance, traceId }: { instance: string; traceId: string }) => ({ instance, traceId })

const toErrors = (operation: Operation | undefined): Record<string, string[]> => {
  if (operation?.does === 'result') return { id: ['The job could not be found.'] }
  if (operation?.does === 'url') return { file_url: ['file_url must not be empty.'] }
  return { file: ['file must not be empty.'] }
}
