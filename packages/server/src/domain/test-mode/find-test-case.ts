import { hash } from 'node:crypto'
import type { ScanKind } from '@assay/contract'
import type { Content } from '../content/content.ts'
import { findTestImage } from '../scans/test-images.ts'
import { type TestCase, type TestEnd, type TestSource, testCases } from './test-cases.ts'

type Asked = { kind: ScanKind; contentName: string | null }

/** What a test asks for with its file: by its name, else by content that everybody knows, else it is clean. */
export const findFileCase = (asked: Asked, content: Content): TestCase =>
  findByName(asked.contentName, asked.kind, 'file') ?? getByEnd(findEnd(asked.kind, content))

/** The same with its URL, which is never called: by the name that was given, else by the last part of the path. */
export const findUrlCase = (asked: Asked, url: string): TestCase =>
  findByName(asked.contentName, asked.kind, 'url') ??
  findByName(URL.parse(url)?.pathname ?? null, asked.kind, 'url') ??
  getByEnd('clean')

/** As it is written in a job. */
export function getTestCase(name: string): TestCase {
  const found = testCases.find((testCase) => testCase.name === name)
  if (found === undefined) throw new Error(`There is no test case ${name}`)
  return found
}

const maxEicarBytes = 128
const eicarSha256 = '275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f'

/** EICAR as its inventors define it: the 68 characters, and blanks after them. */
function findEnd(kind: ScanKind, { bytes, head, sha256 }: Content): TestEnd {
  if (kind === 'nsfw_image') return findTestImage(sha256) ?? 'clean'
  if (bytes > maxEicarBytes) return 'clean'
  const text = head.toString('latin1').replace(/[ \t\r\n\x1a]+$/, '')
  return hash('sha256', Buffer.from(text, 'latin1')) === eicarSha256 ? 'threat' : 'clean'
}

function findByName(path: string | null, kind: ScanKind, source: TestSource): TestCase | undefined {
  const name = /(?:^|[/\\])assay-test-([a-z-]+)(?:\.[^/\\]*)?$/i.exec(path ?? '')?.[1]?.toLowerCase()
  const found = testCases.find((testCase) => testCase.name === name)
  return found?.kinds.includes(kind) && found.sources.includes(source) ? found : undefined
}

const getByEnd = (end: TestEnd): TestCase => {
  const found = testCases.find((testCase) => testCase.end === end)
  if (found === undefined) throw new Error(`No test case ends in ${JSON.stringify(end)}`)
  return found
}
