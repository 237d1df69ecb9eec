import { hash } from 'node:crypto'
import type { Clock } from '../ports/clock.ts'
import type { WebhookSender } from '../ports/webhook-sender.ts'
import { newScanId, toScanResult } from '../scans/scan.ts'
import { toAnswerText } from './answer-text.ts'
import { attemptMs } from './deliver.ts'
import { toSignatureHeaders } from './signature.ts'

export type SampleSent = {
  status: number | null
  durationMs: number
  /** The beginning of the answer, or what went wrong. */
  answer: string
  headers: Record<string, string>
  body: string
}

/** Sends what a receiver will get, of a scan that nobody asked for, and records nothing. */
export async function sendSample(
  deps: { sender: WebhookSender; clock: Clock },
  { url, secrets }: { url: string; secrets: readonly string[] },
): Promise<SampleSent> {
  const at = deps.clock.now()
  const startedAt = performance.now()
  const body = newSampleBody(at)
  const bytes = Buffer.from(body)
  const headers = deps.sender.toHeaders(toSignatureHeaders({ id: newScanId(), body: bytes, secrets, at }))
  const answer = await deps.sender.send({ url, headers, body: bytes, totalMs: attemptMs })
  const durationMs = Math.round(performance.now() - startedAt)
  const text = answer.status === null ? answer.reason : toAnswerText(answer.beginning)
  return { status: answer.status, durationMs, answer: text, headers, body }
}

const content = 'A sample, to try a webhook with.\n'

function newSampleBody(now: Date): string {
  const result = toScanResult({
    id: newScanId(),
    kind: 'malware',
    status: 'clean',
    contentLength: content.length,
    contentType: 'text/plain',
    contentName: 'webhook-sample.txt',
    signals: [],
    metadata: { hash_sha1: hash('sha1', content), hash_sha256: hash('sha256', content) },
    createdAt: now,
    completedAt: now,
  })
  return JSON.stringify(result)
}
