import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRemoteResult } from '../../src/domain/scans/remote-scan.ts'
import { unknownContentFields } from '../../src/domain/scans/scan.ts'

const known = { bytes: 5, sha256: 'ab' }
const clean = {
  status: 'clean',
  signals: [],
  contentLength: 5,
  contentType: 'text/plain',
  metadata: { hash_sha256: 'ab', engine_versions: 'x' },
}
const failedDownload = {
  ...unknownContentFields,
  status: 'error',
  signals: ['Error:DownloadFailed'],
  metadata: { reason: 'No.' },
}

test('a result about the content is accepted', () => {
  assert.deepEqual(checkRemoteResult(clean, known), clean)
  assert.deepEqual(checkRemoteResult(clean, null), clean)
  assert.deepEqual(checkRemoteResult(failedDownload, null), failedDownload)
  const threat = { ...clean, status: 'threat', signals: ['Virus:X'] }
  assert.deepEqual(checkRemoteResult(threat, known), threat)
})

for (const [about, odd] of Object.entries({
  'of other content': { ...clean, metadata: { hash_sha256: 'cd' } },
  'of another length': { ...clean, contentLength: 6 },
  'of no content': { ...clean, metadata: {} },
  'without metadata': { ...clean, metadata: null },
  'that is pending': { ...clean, status: 'pending' },
  'without a status': { ...clean, status: undefined },
  'that is clean and has a finding': { ...clean, signals: ['Virus:X'] },
  'that is a threat without a finding': { ...clean, status: 'threat' },
  'that is an error without a reason': { ...clean, status: 'error' },
  'with signals that are no text': { ...clean, status: 'threat', signals: [1] },
  'with signals that are no list': { ...clean, status: 'threat', signals: 'Virus:X' },
  'with metadata that is no text': { ...clean, metadata: { hash_sha256: 'ab', more: {} } },
  'with half a byte': { ...clean, contentLength: 5.5 },
  'without a type': { ...clean, contentType: undefined },
  'that is nothing': null,
  'that is text': 'clean',
})) {
  test(`a result ${about} is refused`, () =>
    assert.throws(() => checkRemoteResult(odd, known), /result of a remote scan/))
}

test('a clean result of a URL without a hash is refused', () => {
  assert.throws(() => checkRemoteResult({ ...clean, metadata: { reason: 'x' } }, null), /about no content/)
})
