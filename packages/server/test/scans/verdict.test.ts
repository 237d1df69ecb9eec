import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decideMalware, type InspectionReport, type MalwareVerdict } from '../../src/domain/scans/malware-scan.ts'

type Told = Omit<MalwareVerdict, 'doubts'>

const here = (...names: string[]) => names.map((name) => ({ name, path: [] }))
const clean: Told = { status: 'clean', signals: [], path: [] }

describe('the verdict', () => {
  const table: [what: string, inspected: InspectionReport, encryptedIs: 'error' | 'threat', verdict: Told][] = [
    ['nothing found and nothing in doubt is clean', { findings: [], doubts: [] }, 'error', clean],
    [
      'one finding is a threat',
      { findings: here('A'), doubts: [] },
      'error',
      { status: 'threat', signals: ['Virus:A'], path: [] },
    ],
    [
      'a finding weighs more than any doubt',
      { findings: here('A'), doubts: ['EncryptedContent', 'ScanLimitExceeded'] },
      'error',
      { status: 'threat', signals: ['Virus:A'], path: [] },
    ],
    [
      'what two engines found alike is said once',
      { findings: here('A', 'B', 'A'), doubts: [] },
      'error',
      { status: 'threat', signals: ['Virus:A', 'Virus:B'], path: [] },
    ],
    [
      'the deepest place is the one that is told',
      {
        findings: [
          { name: 'A', path: [] },
          { name: 'A', path: ['x.tar', 'a.doc'] },
          { name: 'B', path: ['b.doc'] },
        ],
        doubts: [],
      },
      'error',
      { status: 'threat', signals: ['Virus:A', 'Virus:B'], path: ['x.tar', 'a.doc'] },
    ],
    ...(['EncryptedContent', 'UnsupportedContainer', 'ScanLimitExceeded'] as const).map(
      (doubt): (typeof table)[number] => [
        `${doubt} alone is an error, never clean`,
        { findings: [], doubts: [doubt] },
        'error',
        { status: 'error', signals: [`Error:${doubt}`], path: [] },
      ],
    ),
    [
      'each doubt is said once',
      { findings: [], doubts: ['EncryptedContent', 'ScanLimitExceeded', 'EncryptedContent'] },
      'error',
      { status: 'error', signals: ['Error:EncryptedContent', 'Error:ScanLimitExceeded'], path: [] },
    ],
    [
      'encrypted content is a threat where the operator says so',
      { findings: [], doubts: ['ScanLimitExceeded', 'EncryptedContent'] },
      'threat',
      { status: 'threat', signals: ['Virus:Heuristics.EncryptedContent'], path: [] },
    ],
    [
      'that makes no threat of another doubt',
      { findings: [], doubts: ['UnsupportedContainer'] },
      'threat',
      { status: 'error', signals: ['Error:UnsupportedContainer'], path: [] },
    ],
  ]
  for (const [what, inspected, encryptedIs, verdict] of table) {
    test(what, () => {
      const { doubts, ...told } = decideMalware(inspected, { encryptedIs })
      assert.deepEqual(told, verdict)
      assert.deepEqual(
        doubts,
        [...new Set(inspected.doubts)].map((doubt) => `Error:${doubt}`),
      )
    })
  }

  test('has an end: neither a name nor the list of them grows without bounds', () => {
    const names = Array.from({ length: 500 }, (_, i) => `${i}-${'x'.repeat(5000)}`)
    const { signals } = decideMalware({ findings: here(...names), doubts: [] }, { encryptedIs: 'error' })
    assert.equal(signals.length, 50)
    assert.ok(signals.every((signal) => signal.length <= 'Virus:'.length + 200))
  })
})
