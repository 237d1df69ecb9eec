import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import type { ScanOptions, Verdict } from '../../src/domain/scans/scan.ts'
import { makeScanner } from '../../src/domain/scans/scanner.ts'

test('a threat tells the parts that were not scanned in its metadata', async () => {
  const find = async (verdict: Omit<Verdict, 'metadata'>) => {
    const { scanContent } = makeScanner({
      describe: async () => ({ contentType: 'application/zip', hashes: { hash_sha1: 'a', hash_sha256: 'b' } }),
      assess: async () => ({ ...verdict, metadata: {} }),
      download: () => Promise.reject(new Error('not used')),
    })
    const result = await scanContent({ bytes: 1 } as Content, { kind: 'malware' } as ScanOptions)
    return result.metadata?.not_scanned
  }
  const doubts = ['Error:EncryptedContent', 'Error:ScanLimitExceeded']
  assert.equal(await find({ status: 'threat', signals: ['Virus:A'], doubts }), doubts.join('; '))
  assert.equal(await find({ status: 'threat', signals: ['Virus:A'], doubts: [] }), undefined)
  assert.equal(await find({ status: 'error', signals: doubts, doubts }), undefined)
})
