import { hash } from 'node:crypto'
import timers from 'node:timers/promises'
import type { ScanKind } from '@assay/contract'
import type { Describer } from '../content/describe.ts'
import { EngineDown, type Scores } from '../ports/engines.ts'
import { decideImage, imageThresholds } from '../scans/image-verdict.ts'
import type { Scan } from '../scans/scan.ts'
import { type FinalResult, type Scanner, unknownContent } from '../scans/scanner.ts'
import { testScores } from '../scans/test-images.ts'
import { findFileCase, findUrlCase } from './find-test-case.ts'
import type { ErrorReason, TestCase, TestEnd } from './test-cases.ts'

type Known = Pick<Scan, 'contentLength' | 'contentType' | 'metadata'>

/** In the metadata of everything that a test key asked for, so that nobody takes it for a verdict. */
export const testMark = { test: 'true' }
export const isOfTest = ({ metadata }: Pick<Scan, 'metadata'>): boolean => metadata?.test === testMark.test

/** Scans of test keys end as their names say, all others as the engines do. */
export function withTestKeys(live: Scanner, { describe }: { describe: Describer }): Scanner {
  return {
    async scanContent(content, asked) {
      if (!asked.isTest) return live.scanContent(content, asked)
      const testCase = findFileCase(asked, content)
      const { contentType, hashes } = await describe(content)
      await endSync(testCase)
      return toTestResult(testCase, {
        ...asked,
        known: { contentLength: content.bytes, contentType, metadata: hashes },
      })
    },
    async scanUrl(url, asked) {
      if (!asked.isTest) return live.scanUrl(url, asked)
      const testCase = findUrlCase(asked, url)
      await endSync(testCase, asked.signal)
      return toTestResult(testCase, { ...asked, known: unknownContent })
    },
  }
}

/** `known`: of the content, as far as there is any. What stands behind a URL is a stand-in of ours. */
export function toTestResult(
  { end }: TestCase,
  { kind, flagsSexy, known }: { kind: ScanKind; flagsSexy: boolean; known: Known },
): FinalResult {
  const reason = typeof end === 'object' ? end.error : undefined
  if (reason !== undefined && isOfDownload(reason)) {
    const metadata = { reason: 'A test asked for this. Nothing was downloaded.', ...testMark }
    return { ...unknownContent, status: 'error', signals: [`Error:${reason}`], metadata }
  }
  const content = known.contentLength === 0 ? standIns[kind] : known
  const { status, signals, metadata } = decideTest(end, kind, flagsSexy)
  const told = { ...content.metadata, ...metadata, engine_versions: 'Assay test mode', ...testMark }
  return { ...content, status, signals, metadata: told }
}

/** Somebody waits for it: a failure of the engines is one of the request. */
async function endSync({ end, delayMs }: TestCase, signal?: AbortSignal) {
  const ms = delayMs?.sync ?? 0
  if (ms > 0) await timers.setTimeout(ms, undefined, signal === undefined ? {} : { signal })
  if (typeof end === 'object' && end.error === 'EngineFailed') throw new EngineDown('A test asked for this')
}

function decideTest(end: TestEnd, kind: ScanKind, flagsSexy: boolean) {
  if (typeof end === 'object') return { status: 'error' as const, signals: [`Error:${end.error}`], metadata: {} }
  if (kind === 'nsfw_image') {
    const report = { frames: [{ index: 0, ...scoresOf[end] }], isAnimated: false }
    return decideImage(report, { threshold: imageThresholds.default, flagsSexy })
  }
  return end === 'clean'
    ? { status: 'clean' as const, signals: [], metadata: {} }
    : { status: 'threat' as const, signals: ['Virus:Eicar-Test-Signature'], metadata: {} }
}

const scoresOf: Record<Extract<TestEnd, string>, Scores> = {
  ...testScores,
  clean: { clean: 0.98, pornography: 0.01, sexy: 0.01 },
  threat: testScores.pornography,
}

const isOfDownload = (reason: ErrorReason) => ['DownloadFailed', 'TooLarge', 'EmptyContent'].includes(reason)

const standIns: Record<ScanKind, Known> = {
  malware: toKnown('text/plain; charset=us-ascii', Buffer.from('Assay test content\n')),
  nsfw_image: toKnown(
    'image/png',
    Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    ),
  ),
}

function toKnown(contentType: string, bytes: Buffer): Known {
  const metadata = { hash_sha1: hash('sha1', bytes), hash_sha256: hash('sha256', bytes) }
  return { contentLength: bytes.length, contentType, metadata }
}
