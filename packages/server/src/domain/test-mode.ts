import { hash } from 'node:crypto'
import timers from 'node:timers/promises'
import type { ScanKind, TestAnswer } from '@assay/contract'
import { headers, testAnswers } from '@assay/contract/headers'
import type { Content } from './content/content.ts'
import type { Describer } from './content/media-type.ts'
import type { FetchFailure } from './ports/content-store.ts'
import { type Doubt, EngineDown, type ImageReport, type Scores } from './ports/engines.ts'
import { Problem, type Refusal } from './problem.ts'
import { decideImage, findTestImage, imageThresholds, testScores } from './scans/image-scan.ts'
import { type ContentFields, type FinalResult, type Scan, unknownContentFields } from './scans/scan.ts'
import type { Scanner } from './scans/scanner.ts'

type UnscannedReason = Extract<ImageReport, { unscanned: string }>['unscanned']
type ErrorReason = Doubt | FetchFailure | UnscannedReason | 'EngineFailed'
type TestVerdict = 'clean' | 'threat' | 'pornography' | 'sexy' | { error: ErrorReason }

/** Whether the content comes with the request or by its URL. */
type TestSource = 'file' | 'url'

/** The scans that can ask for a case: those in which a live key can get the same result. */
type Reach = { kinds: readonly ScanKind[]; sources: readonly TestSource[] }

export type TestCase = Reach & {
  /** The text after `assay-test-` in the name of a file or at the end of a URL. */
  name: string
  verdict: TestVerdict
  /** Time until the result; none when undefined. */
  delayMs?: { sync: number; async: number }
}

const everywhere: Reach = { kinds: ['malware', 'nsfw_image'], sources: ['file', 'url'] }
const pictures: Reach = { ...everywhere, kinds: ['nsfw_image'] }
const archives: Reach = { ...everywhere, kinds: ['malware'] }
const downloads: Reach = { ...everywhere, sources: ['url'] }

/** The scans that can ask for each error. The type makes sure that no reason is missing. */
const errors: Record<ErrorReason, Reach> = {
  EncryptedContent: archives,
  UnsupportedContainer: archives,
  UnsupportedImage: pictures,
  ScanLimitExceeded: everywhere,
  DownloadFailed: downloads,
  TooLarge: downloads,
  EmptyContent: downloads,
  EngineFailed: everywhere,
}

/** All results that a test can ask for by name. A test compares them with the table in docs/test-mode.md. */
export const testCases: readonly TestCase[] = [
  { name: 'clean', verdict: 'clean', ...everywhere },
  { name: 'threat', verdict: 'threat', ...everywhere },
  { name: 'pornography', verdict: 'pornography', ...pictures },
  { name: 'sexy', verdict: 'sexy', ...pictures },
  { name: 'error', verdict: { error: 'ScanLimitExceeded' }, ...everywhere },
  ...(Object.entries(errors) as [ErrorReason, Reach][]).map(([error, reach]) => ({
    name: toCaseName(error),
    verdict: { error },
    ...reach,
  })),
  { name: 'slow', verdict: 'clean', delayMs: { sync: 5000, async: 5000 }, ...everywhere },
  { name: 'pending', verdict: 'clean', delayMs: { sync: 0, async: 60_000 }, ...everywhere },
]

/** `EncryptedContent` becomes `encrypted-content`. */
function toCaseName(reason: ErrorReason): string {
  return reason.replaceAll(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase()
}

type ScanName = { kind: ScanKind; contentName: string | null }

/** The case of a file: by its name, otherwise by content that is known (EICAR, test images), otherwise clean. */
export const findFileCase = ({ kind, contentName }: ScanName, content: Content): TestCase =>
  findByName(contentName, kind, 'file') ?? getTestCase(findKnownName(kind, content))

/** The case of a URL, which is never called: by the given name, otherwise by the last part of its path. */
export const findUrlCase = ({ kind, contentName }: ScanName, url: string): TestCase =>
  findByName(contentName, kind, 'url') ??
  findByName(URL.parse(url)?.pathname ?? null, kind, 'url') ??
  getTestCase('clean')

/** Returns the case with a name that a job has recorded. */
export function getTestCase(name: string): TestCase {
  const match = testCases.find((testCase) => testCase.name === name)
  if (match === undefined) throw new Error(`There is no test case ${name}`)
  return match
}

const maxEicarBytes = 128
const eicarSha256 = '275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f'

/** EICAR is defined as 68 characters that may be followed by whitespace, 128 bytes in all. */
function findKnownName(kind: ScanKind, { bytes, head, sha256 }: Content): string {
  if (kind === 'nsfw_image') return findTestImage(sha256) ?? 'clean'
  if (bytes > maxEicarBytes) return 'clean'
  const text = head.toString('latin1').replace(/[ \t\r\n\x1a]+$/, '')
  return hash('sha256', Buffer.from(text, 'latin1')) === eicarSha256 ? 'threat' : 'clean'
}

function findByName(path: string | null, kind: ScanKind, source: TestSource): TestCase | undefined {
  const name = /(?:^|[/\\])assay-test-([a-z-]+)(?:\.[^/\\]*)?$/i.exec(path ?? '')?.[1]?.toLowerCase()
  const match = testCases.find((testCase) => testCase.name === name)
  return match?.kinds.includes(kind) && match.sources.includes(source) ? match : undefined
}

const refusals: Record<TestAnswer, Refusal> = {
  'out-of-credits': { kind: 'out-of-credit' },
  'rate-limited': { kind: 'rate-limited', retryAfterSeconds: 1 },
  'server-error': { kind: 'engine-unavailable', detail: `${headers.test} asked for this answer.` },
  overloaded: { kind: 'overloaded', retryAfterSeconds: 1 },
}

/**
 * The refusal that the values of the test header ask for. An unknown value is refused too: it is a mistake in the test.
 */
export function findTestRefusal(values: readonly string[]): Problem | undefined {
  const [value] = values
  if (value === undefined) return undefined
  const testAnswer = testAnswers.find((answer) => answer === value.trim().toLowerCase())
  if (testAnswer !== undefined && values.length === 1) return new Problem(refusals[testAnswer])
  const error = `${headers.test} must be given once, as one of ${testAnswers.join(', ')}.`
  return new Problem({ kind: 'validation', errors: { [headers.test]: [error] } })
}

/** Metadata that marks the result of a test key, so that it is not mistaken for a verdict. */
export const testMark = { test: 'true' }
export const isTestScan = ({ metadata }: Pick<Scan, 'metadata'>): boolean => metadata?.test === testMark.test

/** Answers scans of test keys by their names, and passes all others to the live scanner. */
export function withTestKeys(live: Scanner, { describe }: { describe: Describer }): Scanner {
  const testScanner: Scanner = {
    async scanContent(content, options) {
      const testCase = findFileCase(options, content)
      const { contentType, hashes } = await describe(content, options.accountId)
      await simulateSync(testCase)
      const contentFields = { contentLength: content.bytes, contentType, metadata: hashes }
      return toTestResult(testCase, { ...options, contentFields })
    },
    async scanUrl(url, options) {
      const testCase = findUrlCase(options, url)
      await simulateSync(testCase, options.signal)
      return toTestResult(testCase, { ...options, contentFields: unknownContentFields })
    },
  }
  return {
    scanContent: (content, options) => (options.isTest ? testScanner : live).scanContent(content, options),
    scanUrl: (url, options) => (options.isTest ? testScanner : live).scanUrl(url, options),
  }
}

/**
 * The result of a case. `contentFields` describe the content that was uploaded; a URL gets the stand-in of its kind.
 */
export function toTestResult(
  { verdict }: TestCase,
  { kind, flagsSexy, contentFields }: { kind: ScanKind; flagsSexy: boolean; contentFields: ContentFields },
): FinalResult {
  const reason = typeof verdict === 'object' ? verdict.error : undefined
  if (reason !== undefined && errors[reason] === downloads) {
    const metadata = { reason: 'A test asked for this result. Nothing was downloaded.', ...testMark }
    return { ...unknownContentFields, status: 'error', signals: [`Error:${reason}`], metadata }
  }
  const content = contentFields.contentLength === 0 ? standIns[kind] : contentFields
  const { status, signals, metadata } = decideTest(verdict, kind, flagsSexy)
  const allMetadata = { ...content.metadata, ...metadata, engine_versions: 'Assay test mode', ...testMark }
  return { ...content, status, signals, metadata: allMetadata }
}

/** Waits and fails as the case asks. In a synchronous scan, a failed engine is an error of the request. */
async function simulateSync({ verdict, delayMs }: TestCase, signal?: AbortSignal) {
  const ms = delayMs?.sync ?? 0
  if (ms > 0) await timers.setTimeout(ms, undefined, signal === undefined ? {} : { signal })
  if (typeof verdict === 'object' && verdict.error === 'EngineFailed') throw new EngineDown('A test asked for this')
}

function decideTest(verdict: TestVerdict, kind: ScanKind, flagsSexy: boolean) {
  if (typeof verdict === 'object')
    return { status: 'error' as const, signals: [`Error:${verdict.error}`], metadata: {} }
  if (kind === 'nsfw_image') {
    const report = { frames: [{ index: 0, ...scoresOf[verdict] }], framesTotal: 1, isAnimated: false }
    return decideImage(report, { threshold: imageThresholds.default, flagsSexy })
  }
  return verdict === 'clean'
    ? { status: 'clean' as const, signals: [], metadata: {} }
    : { status: 'threat' as const, signals: ['Virus:Eicar-Test-Signature'], metadata: {} }
}

const scoresOf: Record<Extract<TestVerdict, string>, Scores> = {
  ...testScores,
  clean: { clean: 0.98, pornography: 0.01, sexy: 0.01 },
  threat: testScores.pornography,
}

const tinyPng = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The content that a test result describes where a live scan would have downloaded some. */
const standIns: Record<ScanKind, ContentFields> = {
  malware: toContentFields('text/plain; charset=us-ascii', Buffer.from('Assay test content\n')),
  nsfw_image: toContentFields('image/png', Buffer.from(tinyPng, 'base64')),
}

function toContentFields(contentType: string, bytes: Buffer): ContentFields {
  const metadata = { hash_sha1: hash('sha1', bytes), hash_sha256: hash('sha256', bytes) }
  return { contentLength: bytes.length, contentType, metadata }
}
