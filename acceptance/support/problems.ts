import assert from 'node:assert/strict'
import { ProblemDetails, type ProblemKind, problemKinds, ValidationProblemDetails } from '@assay/contract'
import type { Answer } from './http.ts'
import { Check } from './schema-check.ts'

export type ExpectedProblem = {
  status: number
  kind: ProblemKind
  /** The exact fields that `errors` names. */
  errors?: string[]
}

/** Asserts that a response is the documented problem, member by member, and that its type is a page that opens. */
export async function assertProblem(answer: Answer, expected: ExpectedProblem, about = answer.path) {
  const { status, kind, errors } = expected
  assert.equal(answer.status, status, `${about}: ${answer.text}`)
  assert.equal(answer.headers['content-type'], 'application/problem+json', about)
  const problem = JSON.parse(answer.text)
  assert(Check(errors === undefined ? ProblemDetails : ValidationProblemDetails, problem), `${about}: ${answer.text}`)
  const members = ['detail', 'instance', 'status', 'title', 'traceId', 'type']
  assert.deepEqual(Object.keys(problem).sort(), errors === undefined ? members : [...members, 'errors'].sort(), about)
  assert.equal(problem.status, status, about)
  assert.equal(problem.title, problemKinds[kind].title, about)
  assert.equal(problem.instance, answer.path.split('?', 1)[0], about)
  assert.match(String(problem.detail), /\S/, about)
  assert.match(problem.traceId, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/, about)
  assert.match(String(problem.type), new RegExp(`/problems/${kind}$`), about)
  if (errors !== undefined) assertErrors((problem as ValidationProblemDetails).errors, errors, about)
  await assertOpens(String(problem.type))
}

function assertErrors(found: Record<string, string[]>, fields: string[], about: string) {
  assert.deepEqual(Object.keys(found).sort(), [...fields].sort(), about)
  for (const messages of Object.values(found)) {
    assert(messages.length > 0, about)
    for (const message of messages) assert.match(message, /\S/, about)
  }
}

export function assertEmpty(answer: Answer, status: number) {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.text, '')
  assert.equal(answer.headers['content-type'], undefined)
}

const opened = new Set<string>()

async function assertOpens(type: string) {
  if (opened.has(type)) return
  const page = await fetch(type)
  assert.equal(page.status, 200, type)
  await page.body?.cancel()
  opened.add(type)
}
