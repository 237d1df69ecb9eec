import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Problem, type Refusal } from '../../src/domain/problem.ts'
import { toErrorVerdict, toIcapAnswer } from '../../src/listeners/listener-scan.ts'

const document = readFileSync(new URL('../../../../docs/listeners.md', import.meta.url), 'utf8')
const [, table = ''] = /\n\| Reason .*\n\| -.*\n((?:\|.*\n)+)/.exec(document) ?? []
const listNames = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const rows = table
  .trim()
  .split('\n')
  .map((row) => {
    const [, reasons, , codes] = row.split('|')
    return { reasons: listNames(reasons), codes: listNames(codes) }
  })

test('docs/listeners.md has the X-Error-Code of each reason', () => {
  assert(rows.length > 5)
  const toCode = (reason: string) =>
    toIcapAnswer({ is: 'not-scanned', names: [reason] }, true).headers['X-Error-Code'] ?? ''
  // A row with several reasons of the service names one of their codes.
  for (const { reasons, codes } of rows) {
    for (const code of codes) assert(reasons.map(toCode).includes(code), `${reasons} ${code}`)
  }
  for (const reason of ['UnsupportedEncoding', 'MalformedForm']) assert.equal(toCode(reason), 'decode_error')
})

test('docs/listeners.md has the reason of each refusal', () => {
  const refusals: Refusal[] = [
    { kind: 'unauthenticated' },
    { kind: 'rate-limited', retryAfterSeconds: 7 },
    { kind: 'out-of-credit' },
    { kind: 'overloaded', retryAfterSeconds: 5 },
    { kind: 'unavailable', retryAfterSeconds: 5 },
    { kind: 'storage-full', retryAfterSeconds: 30 },
    { kind: 'outcome-unknown' },
    { kind: 'engine-unavailable', detail: 'away' },
    { kind: 'content-too-large', detail: 'large' },
  ]
  const errors = [...refusals.map((refusal) => new Problem(refusal)), new Error('a fault')]
  for (const name of errors.flatMap((error) => toErrorVerdict(error).names)) {
    assert(
      rows.some(({ reasons }) => reasons.includes(name)),
      name,
    )
  }
})
