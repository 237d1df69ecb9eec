import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineDown, type EngineReport } from '../../src/domain/ports/engines.ts'
import { toReport } from '../../src/engines/clamav/clamav-engine.ts'

const nothing: EngineReport = { findings: [], doubts: [], unopened: false }

describe('an answer of clamd', () => {
  test('is clean in its very words only', () => {
    assert.deepEqual(toReport('stream: OK'), nothing)
  })

  const found: Record<string, Partial<EngineReport>> = {
    'stream: Eicar-Test-Signature FOUND': { findings: ['Eicar-Test-Signature'] },
    'stream: Win.Test.EICAR_HDB-1.UNOFFICIAL FOUND': { findings: ['Win.Test.EICAR_HDB-1'] },
    'stream: YARA.assay_webshell.UNOFFICIAL FOUND': { findings: ['assay_webshell'] },
    'stream: My.UNOFFICIAL.Name FOUND': { findings: ['My.UNOFFICIAL.Name'] },
    'stream: Not.YARA.Rule FOUND': { findings: ['Not.YARA.Rule'] },
    'stream: A name FOUND in words FOUND': { findings: ['A name FOUND in words'] },
    'stream: OK FOUND': { findings: ['OK'] },
    'stream: Heuristics.Phishing.Email.SpoofedDomain FOUND': { findings: ['Heuristics.Phishing.Email.SpoofedDomain'] },
    'stream: Heuristics.Encrypted.Zip FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Encrypted.PDF FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Assay.Encrypted.Office.UNOFFICIAL FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND': { doubts: ['ScanLimitExceeded'] },
    'stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND': { doubts: ['ScanLimitExceeded'] },
    'stream: Heuristics.Assay.Container.Zstd.UNOFFICIAL FOUND': { unopened: true },
    'INSTREAM size limit exceeded. ERROR': { doubts: ['ScanLimitExceeded'] },
  }
  for (const [reply, report] of Object.entries(found)) {
    test(`"${reply}" is ${JSON.stringify(report)}`, () => assert.deepEqual(toReport(reply), { ...nothing, ...report }))
  }

  const noAnswers = [
    '',
    ' ',
    '\0',
    'OK',
    'stream:OK',
    'stream: ok',
    'stream: OK ',
    ' stream: OK',
    'stream: OK\n',
    'stream: OK\0stream: OK',
    'stream: OK\nstream: OK',
    '1: stream: OK',
    'other: OK',
    'stream: ',
    'stream: FOUND',
    'stream:  FOUND',
    'stream: Can not open file ERROR',
    "stream: Can't allocate memory ERROR",
    'stream: Time limit reached ERROR',
    'UNKNOWN COMMAND',
    'COMMAND READ TIMED OUT',
    'PONG',
    '\u{fffd}\u{fffd}',
    'Eicar FOUND',
  ]
  for (const reply of noAnswers) {
    test(`${JSON.stringify(reply)} is none`, () => assert.throws(() => toReport(reply), EngineDown))
  }
})
