import assert from 'node:assert/strict'
import { before } from 'node:test'
import { headers, type Operation, operations, ScanReceipt, ScanResult } from '@assay/contract'
import { filePart, formType, images, type Part, textPart, toForm } from './forms.ts'
import { type Answer, type Outgoing, sendTo } from './http.ts'
import { assertProblem, type ExpectedProblem } from './problems.ts'
import { Check } from './schema-check.ts'
import { getSharedService } from './shared-service.ts'

type Fields = Record<string, unknown>

export const nobodysId = '00000000-0000-4000-8000-000000000000'
/** The one host that the shared service may call although it is not public; see scripts/test-origin.ts. */
const origin = process.env.ASSAY_TEST_ORIGIN ?? 'http://files.example.com'
export const goodUrl = `${origin}/one.png`
const credits = 1000

/**
 * Prepares the tests of one operation: an account that may use it, and one that may not, because it has no credits and a
 * rate limit of five requests an hour. Call it once for each `describe`, first.
 */
export function useOperation(id: string) {
  const operation = operations.find((candidate) => candidate.id === id)
  if (operation === undefined) throw new Error(`The contract has no operation ${id}`)
  const service = getSharedService()
  let key = ''
  let poorKey = ''
  /** Requests that were accepted so far; the tests of an operation run one after the other. */
  let spent = 0
  before(async () => {
    const [account, poor] = await Promise.all([
      service.createAccount('--credits', String(credits)),
      service.createAccount('--credits', '0', '--rate', '5/1h'),
    ])
    key = account.api_key
    poorKey = poor.api_key
  })

  /** Sends a request with the key of the account that may use the operation, unless the headers have another. */
  const send = (outgoing: Partial<Outgoing> = {}): Promise<Answer> => {
    const { method, path } = toRequest(operation)
    return sendTo(service.url, { method, path, ...outgoing, headers: { [headers.apiKey]: key, ...outgoing.headers } })
  }

  return {
    service,
    operation,
    send,
    key: () => key,
    poorKey: () => poorKey,
    /** Sends a valid request. */
    sendGood: (more: Outgoing['headers'] = {}) => {
      const request = toRequest(operation)
      return send({ ...request, headers: { ...request.headers, ...more } })
    },
    /** Sends a request that is valid except for these fields. */
    sendFields: (fields: Fields) => send(toRequest(operation, fields)),
    sendForm: (...parts: Part[]) => send({ headers: { 'content-type': formType }, body: toForm(parts) }),
    sendJson: (body: string | Buffer) => send({ headers: { 'content-type': 'application/json' }, body }),
    /** The request was refused with this problem, and not charged. */
    async assertRefused(answer: Answer, expected: ExpectedProblem, about?: string) {
      await assertProblem(answer, expected, about)
      assertCredits(answer, credits - spent, credits)
    },
    assertInvalid(answer: Answer, errors: string[], about?: string) {
      return this.assertRefused(answer, { status: 422, kind: 'validation', errors }, about)
    },
    /** The request was accepted: it has a result or the identifier of a job, and cost one credit. */
    async assertAccepted(answer: Answer, about?: string) {
      const isAsync = 'mode' in operation && operation.mode === 'async'
      assert.equal(answer.status, isAsync ? 202 : 201, `${about}: ${answer.text}`)
      const body: unknown = JSON.parse(answer.text)
      assert(Check(isAsync ? ScanReceipt : ScanResult, body), `${about}: ${answer.text}`)
      if (isAsync) assert.equal(answer.headers[headers.result.toLowerCase()], (body as { id: string }).id)
      spent++
      assertCredits(answer, credits - spent, credits)
    },
    async assertNothingElseCharged() {
      const me = await send({ method: 'GET', path: '/v1/me' })
      const { credit_limit, credit_remaining } = JSON.parse(me.text)
      assert.deepEqual({ credit_limit, credit_remaining }, { credit_limit: credits, credit_remaining: credits - spent })
    },
  }
}

export type Subject = ReturnType<typeof useOperation>

export function assertCredits(answer: Answer, left: number, limit = left) {
  assert.equal(answer.headers['x-api-credit-limit'], String(limit))
  assert.equal(answer.headers['x-api-credit-remaining'], String(left))
}

/** A valid request for any operation. Fields are added to its form or JSON, or replace those that it has. */
export function toRequest(operation: Operation, fields: Fields = {}): Outgoing {
  const { method, path } = operation
  if (operation.does === 'file') {
    const content = operation.kind === 'malware' ? 'content' : images['one.png']
    const texts = Object.entries(fields).map(([name, value]) => textPart(name, String(value)))
    return { method, path, headers: { 'content-type': formType }, body: toForm([...texts, filePart(content)]) }
  }
  if (operation.does === 'url') {
    const body = JSON.stringify({ file_url: goodUrl, ...fields })
    return { method, path, headers: { 'content-type': 'application/json' }, body }
  }
  return { method, path: path.replace('{id}', nobodysId) }
}
