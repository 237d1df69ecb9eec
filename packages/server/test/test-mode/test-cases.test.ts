import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, mock, test } from 'node:test'
import { type ScanKind, testAnswers } from '@assay/contract'
import { makeDescriber } from '../../src/domain/content/media-type.ts'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import type { Problem } from '../../src/domain/problem.ts'
import { type FinalResult, unknownContentFields } from '../../src/domain/scans/scan.ts'
import type { Scanner } from '../../src/domain/scans/scanner.ts'
import {
  findFileCase,
  findTestRefusal,
  findUrlCase,
  isTestScan,
  type TestCase,
  testCases,
  toTestResult,
  withTestKeys,
} from '../../src/domain/test-mode.ts'
import { statusOf } from '../../src/http/problem-response.ts'
import { newContent } from '../scans/scan-support.ts'

const kinds: ScanKind[] = ['malware', 'nsfw_image']
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD', '-ANTIVIRUS-TEST-FILE!$H+H*'].join('')
const harmless = newContent('harmless')
const never = new AbortController().signal
const unused = async (): Promise<FinalResult> => {
  throw new Error('An engine was called')
}
const options = {
  kind: 'malware' as ScanKind,
  contentName: null as string | null,
  flagsSexy: true,
  accountId: null,
  isTest: true,
}
const forUrl = { accountId: 'a', mode: 'sync' as const, signal: never }
const { scanContent, scanUrl } = withTestKeys(
  { scanContent: unused, scanUrl: unused },
  { describe: makeDescriber({ entries: 0 }) },
)
const readDocument = () => readFileSync(new URL('../../../../docs/test-mode.md', import.meta.url), 'utf8')

function readTable(name: string): string[][] {
  const table = new RegExp(`<!-- ${name} -->\n(.*)<!-- /${name} -->`, 's').exec(readDocument())?.[1] ?? ''
  const [, , ...rows] = table.trim().split('\n')
  return rows.map((row) => row.split('|').slice(1, -1)).map((cells) => cells.map((cell) => cell.trim()))
}

describe('test mode', () => {
  test('has the cases of docs/test-mode.md', () => {
    assert.deepEqual(readTable('cases'), testCases.map(toRow))
  })

  test('has the answers of docs/test-mode.md', () => {
    const statuses = testAnswers.map((answer) => {
      const { refusal } = findTestRefusal([answer]) as Problem
      return [`\`${answer}\``, String(statusOf[refusal.kind])]
    })
    assert.deepEqual(
      readTable('answers').map((row) => row.slice(0, 2)),
      statuses,
    )
  })

  for (const kind of kinds) {
    test(`finds each case of ${kind} by the name of a file and of a URL, and nowhere else`, () => {
      for (const testCase of testCases) {
        const name = `assay-test-${testCase.name}.png`
        const reaches = (source: 'file' | 'url') => testCase.kinds.includes(kind) && testCase.sources.includes(source)
        const expect = (source: 'file' | 'url') => (reaches(source) ? testCase.name : 'clean')
        assert.equal(findFileCase({ kind, contentName: name }, harmless).name, expect('file'))
        assert.equal(findUrlCase({ kind, contentName: name }, 'https://files.test/x').name, expect('url'))
        const url = `https://files.test/in/${name}?signed=1`
        assert.equal(findUrlCase({ kind, contentName: null }, url).name, expect('url'))
      }
    })
  }

  test('finds a name regardless of case, folder and extension, and no similar name', () => {
    const find = (contentName: string | null) => findFileCase({ kind: 'malware', contentName }, harmless).name
    for (const name of ['assay-test-threat', 'a/b\\Assay-Test-THREAT.tar.gz', 'assay-test-threat.']) {
      assert.equal(find(name), 'threat', name)
    }
    for (const name of [null, 'threat.txt', 'my-assay-test-threat', 'assay-test-threats', 'assay-test-threat/a.txt']) {
      assert.equal(find(name), 'clean', String(name))
    }
    const found = findUrlCase({ kind: 'malware', contentName: 'assay-test-clean' }, 'https://x.test/assay-test-threat')
    assert.equal(found.name, 'clean', 'the given name wins')
  })

  test('recognises EICAR as it is defined, unless the name asks for another result', () => {
    const find = (text: string, contentName: string | null = null) =>
      findFileCase({ kind: 'malware', contentName }, newContent(text)).name
    for (const text of [eicar, `${eicar}\r\n`, eicar + ' '.repeat(60)]) assert.equal(find(text), 'threat')
    for (const text of [eicar + ' '.repeat(61), ` ${eicar}`, `${eicar}x`, eicar.slice(1)]) {
      assert.equal(find(text), 'clean')
    }
    assert.equal(find(eicar, 'assay-test-error.txt'), 'error')
  })

  test('runs no engine and marks every result, of synchronous scans and of jobs', async () => {
    for (const testCase of testCases.filter(({ delayMs }) => delayMs === undefined)) {
      for (const kind of testCase.kinds) {
        const contentName = `assay-test-${testCase.name}.png`
        const contentFields = { contentLength: 8, contentType: 'text/plain', metadata: { hash_sha1: 'x' } }
        const later = toTestResult(testCase, { kind, flagsSexy: true, contentFields })
        assert(isTestScan(later))
        assert.equal(later.signals?.length === 0, later.status === 'clean')
        const now = scanUrl('https://files.test/', { ...options, ...forUrl, kind, contentName })
        if (testCase.name === 'engine-failed') await assert.rejects(now, EngineDown)
        else {
          const { status, signals } = later
          const { status: nowStatus, signals: nowSignals, metadata } = await now
          assert.deepEqual([nowStatus, nowSignals, metadata?.test], [status, signals, 'true'])
        }
      }
    }
  })

  test('describes uploaded content truthfully', async () => {
    const { metadata, contentLength } = await scanContent(harmless, options)
    const { sha1: hash_sha1, sha256: hash_sha256 } = harmless
    assert.deepEqual(metadata, { hash_sha1, hash_sha256, engine_versions: 'Assay test mode', test: 'true' })
    assert.equal(contentLength, 8)
  })

  test('delays a slow result by 5 seconds, or until the caller leaves', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      let isDone = false
      const slow = scanUrl('https://files.test/assay-test-slow', { ...options, ...forUrl }).finally(() => {
        isDone = true
      })
      await Promise.resolve()
      mock.timers.tick(4999)
      for (let i = 0; i < 10; i++) await Promise.resolve()
      assert.equal(isDone, false)
      mock.timers.tick(1)
      assert.equal((await slow).status, 'clean')
    } finally {
      mock.timers.reset()
    }
    const gone = scanUrl('https://files.test/assay-test-slow', { ...options, ...forUrl, signal: AbortSignal.abort() })
    await assert.rejects(gone, { name: 'AbortError' })
  })

  test('passes scans of live keys to the engines', async () => {
    const seen: string[] = []
    const found = { ...unknownContentFields, status: 'error' as const, signals: ['Error:X'] }
    const live: Scanner = {
      async scanContent() {
        seen.push('content')
        return found
      },
      async scanUrl(url) {
        seen.push(url)
        return found
      },
    }
    const both = withTestKeys(live, { describe: makeDescriber({ entries: 0 }) })
    const liveOptions = { ...options, contentName: 'assay-test-clean.txt', isTest: false }
    assert.equal(await both.scanContent(harmless, liveOptions), found)
    assert.equal(await both.scanUrl('https://files.test/assay-test-clean', { ...liveOptions, ...forUrl }), found)
    assert.deepEqual(seen, ['content', 'https://files.test/assay-test-clean'])
  })

  test('calls sexy pictures clean for an account that allows them', () => {
    const testCase = testCases.find(({ name }) => name === 'sexy') as TestCase
    const contentFields = { contentLength: 1, contentType: 'image/png', metadata: null }
    const { status, metadata } = toTestResult(testCase, { kind: 'nsfw_image', flagsSexy: false, contentFields })
    assert.deepEqual([status, metadata?.classification_sexy], ['clean', '0.9700'])
  })
})

/** The row of the case in the document. */
function toRow(testCase: TestCase): string[] {
  const cells = kinds.map((kind) => (testCase.kinds.includes(kind) ? toCell(testCase, kind) : '-'))
  const sources = testCase.sources.map((source) => ({ file: 'files', url: 'URLs' })[source])
  return [`\`assay-test-${testCase.name}\``, sources.join(', '), ...cells]
}

function toCell({ verdict, delayMs, ...testCase }: TestCase, kind: ScanKind): string {
  const contentFields = { contentLength: 1, contentType: 'x', metadata: null }
  const { status, signals } = toTestResult({ ...testCase, verdict }, { kind, flagsSexy: true, contentFields })
  const told = [status, ...(signals ?? [])].map((word) => `\`${word}\``).join(' ')
  const after = (ms: number) => (ms === 0 ? told : `${told} after ${ms / 1000} s`)
  if (typeof verdict === 'object' && verdict.error === 'EngineFailed') return `scan: 500; submit: ${told}`
  const { sync, async } = delayMs ?? { sync: 0, async: 0 }
  return sync === async ? after(sync) : `scan: ${after(sync)}; submit: ${after(async)}`
}
