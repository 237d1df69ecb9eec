import assert from 'node:assert/strict'
import { headers, ScanResult } from '@assay/contract'
import { boundary, filePart, formType, textPart, toForm, toPart } from './forms.ts'
import { type Answer, sendTo } from './http.ts'
import { Check } from './schema-check.ts'

const imagePath = '/v1/nsfw/images/scan/file'

type Named = { partName?: string; fileName?: string; path?: string }

/** Uploads content for a verdict. `name` is the filename of the form part. */
export function uploadTo(url: string, key: string, content: Buffer | string, name: string | Named = {}) {
  const { partName, fileName, path } = typeof name === 'string' ? { partName: name } : name
  const file = filePart(content, `filename="${partName ?? ''}"`)
  const texts = fileName === undefined ? [] : [textPart('file_name', fileName)]
  return sendTo(url, { ...toUpload(key, toForm([...texts, file])), ...(path === undefined ? {} : { path }) })
}

/** Uploads a picture for a verdict. */
export const uploadImageTo = (url: string, key: string, content: Buffer, fileName?: string) =>
  uploadTo(url, key, content, { ...(fileName === undefined ? {} : { fileName }), path: imagePath })

/** Uploads content piece by piece for a verdict. */
export function streamTo(url: string, key: string, pieces: Iterable<Buffer>) {
  const body = function* () {
    yield toPart(filePart('')).subarray(0, -2)
    yield* pieces
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  return sendTo(url, toUpload(key, body()))
}

const toUpload = (key: string, body: Buffer | Iterable<Buffer>) => ({
  method: 'POST',
  path: '/v1/malware/scan/file',
  headers: { [headers.apiKey]: key, 'content-type': formType },
  body,
})

export type Verdict = ScanResult & { signals: string[]; metadata: Record<string, string> }

/** Returns the verdict of a 201, and checks that exactly the clean ones have no signals. */
export function toVerdict(answer: Answer, about = ''): Verdict {
  assert.equal(answer.status, 201, `${about} ${answer.text}`)
  const verdict: unknown = JSON.parse(answer.text)
  assert(Check(ScanResult, verdict) && verdict.signals && verdict.metadata, `${about} ${answer.text}`)
  assert.equal(verdict.signals.length === 0, verdict.status === 'clean', `${about} ${answer.text}`)
  return verdict as Verdict
}

/** Reads the number of credits that the first account of a service has spent. */
export async function readSpent({ url, apiKey }: { url: string; apiKey: string }): Promise<number> {
  const me = await sendTo(url, { method: 'GET', path: '/v1/me', headers: { [headers.apiKey]: apiKey } })
  const { credit_limit, credit_remaining } = JSON.parse(me.text)
  return credit_limit - credit_remaining
}

type Readiness = {
  status: string
  reasons: string[]
  engines: { name: string; version: string | null; signatures: number | null }[]
}

export async function readReadiness(url: string): Promise<Readiness> {
  return (await (await fetch(`${url}/readyz`)).json()) as Readiness
}

/** Returns the reason to skip tests that need ClamAV, or false when the service has it. */
export async function lacksClamAv(url: string): Promise<string | false> {
  const { engines } = await readReadiness(url)
  return engines.some(({ name }) => name === 'ClamAV') ? false : 'ClamAV is not installed, and only root may install it'
}

/** Reason to skip slow tests that do not depend on the database in the run on the external PostgreSQL. */
export const alreadyTested =
  process.env.ASSAY_TEST_EXTERNAL !== undefined && 'tested in the run on the embedded database'
