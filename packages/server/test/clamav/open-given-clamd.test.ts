import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toState } from '../../src/engines/clamav/open-given-clamd.ts'

test('the version of a clamd tells the build time of its official databases, if it has them', () => {
  const { version, signaturesAt } = toState('ClamAV 1.4.6/27820/Sat Nov 14 08:25:01 2026')
  assert.deepEqual([version, signaturesAt?.toISOString()], ['ClamAV 1.4.6', '2026-11-14T08:25:01.000Z'])
  for (const answer of [
    'ClamAV 1.4.6',
    'ClamAV 1.4.6/0/Sat Nov 14 08:25:01 2026',
    'ClamAV 1.4.6/27820',
    'ClamAV 1.4.6/x/y',
  ])
    assert.equal(toState(answer).signaturesAt, undefined, answer)
})
