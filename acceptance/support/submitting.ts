import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { headers, ScanReceipt, ScanResult } from '@assay/contract'
import { filePart, formType, textPart, toForm } from './forms.ts'
import { type Answer, type Outgoing, sendTo } from './http.ts'
import { Check } from './schema-check.ts'

/** The kind of a scan, as in the path of its operation. */
export type Kind = 'malware' | 'nsfw/images'
type Fields = Record<string, string>

/** Calls the scan operations with the key of one account. */
export function makeCaller(url: string, key: string) {
  const send = (outgoing: Outgoing): Promise<Answer> =>
    sendTo(url, { ...outgoing, headers: { [headers.apiKey]: key, ...outgoing.headers } })

  const fetchResult = (kind: Kind, id: string, query = '', more: Outgoing['headers'] = {}) =>
    send({ method: 'GET', path: `/v1/${kind}/${id}${query}`, headers: more })

  return {
    fetchResult,

    /** `how` is the end of the path, such as `submit/file`. */
    sendFile(kind: Kind, how: 'scan' | 'submit', content: Buffer | string, fields: Fields = {}, more: Fields = {}) {
      const texts = Object.entries(fields).map(([name, value]) => textPart(name, value))
      const body = toForm([...texts, filePart(content)])
      const path = `/v1/${kind}/${how}/file`
      return send({ method: 'POST', path, headers: { 'content-type': formType, ...more }, body })
    },

    sendUrl(kind: Kind, how: 'scan' | 'submit', fileUrl: string, fields: Fields = {}, more: Fields = {}) {
      const body = JSON.stringify({ file_url: fileUrl, ...fields })
      const path = `/v1/${kind}/${how}/url`
      return send({ method: 'POST', path, headers: { 'content-type': 'application/json', ...more }, body })
    },

    /** Waits for the final result of a scan. */
    async complete(kind: Kind, id: string): Promise<ScanResult> {
      for (let tries = 0; tries < 4; tries++) {
        const result = toResult(await fetchResult(kind, id, '?wait=30'), 200)
        if (result.status !== 'pending') return result
      }
      throw new Error(`${id} is pending after two minutes`)
    },

    async readSpent(): Promise<number> {
      const { credit_limit, credit_remaining } = JSON.parse((await send({ method: 'GET', path: '/v1/me' })).text)
      return credit_limit - credit_remaining
    },
  }
}

/** Returns the id in a 202. */
export function toId(answer: Answer): string {
  assert.equal(answer.status, 202, answer.text)
  const receipt: unknown = JSON.parse(answer.text)
  assert(Check(ScanReceipt, receipt), answer.text)
  assert.deepEqual(Object.keys(receipt), ['id'])
  assert.equal(answer.headers[headers.result.toLowerCase()], receipt.id)
  return receipt.id
}

/** Returns the result in a 200 or, for a synchronous scan, in a 201. */
export function toResult(answer: Answer, status: 200 | 201): ScanResult {
  assert.equal(answer.status, status, answer.text)
  const result: unknown = JSON.parse(answer.text)
  assert(Check(ScanResult, result), answer.text)
  return result
}

/** Lists the files in which a service keeps the content of jobs at this moment. */
export function listKept(dataDir: string): string[] {
  try {
    return readdirSync(join(dataDir, 'jobs')).filter((name) => name !== 'store-id')
  } catch {
    return []
  }
}

/** Content that is new each time and begins like no format: one of some thousand random contents looks like one. */
export const newNoise = (bytes: number): Buffer => Buffer.concat([Buffer.from('noise:'), randomBytes(bytes - 6)])
