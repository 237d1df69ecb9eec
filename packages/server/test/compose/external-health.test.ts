import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listExternalChecks, noExternal, toExternalStatus } from '../../src/compose/external-engines.ts'
import type { EngineHealth } from '../../src/domain/ports/engines.ts'
import { newEngine, state } from '../scans/scan-support.ts'

const health: EngineHealth = { breaker: 'open', fault: 'refused.', scans: 3, failures: 2, p50: 1.26, p99: undefined }
const newExternal = (name: string, isRequired: boolean, change: Partial<EngineHealth> = {}) =>
  newEngine({ name, external: { kind: 'clamd', isRequired, findHealth: () => ({ ...health, ...change }) } })

test('the status page shows the health of external engines, and who disagreed about what', () => {
  const { external } = newExternal('second', false)
  const opinions = [
    { name: 'ClamAV', verdict: 'clean' as const, findings: [], doubts: [], milliseconds: 1 },
    { name: 'second', verdict: 'threat' as const, findings: ['A', 'B'], doubts: [], milliseconds: 1 },
  ]
  const recorded = { at: new Date(0), sha256: 'ab', status: 'threat', opinions }
  const status = toExternalStatus(
    [
      { name: 'ClamAV', state },
      { name: 'second', state, external },
    ],
    {
      ...noExternal,
      countDisagreements: () => 7,
      listDisagreements: () => [recorded],
    },
  )
  assert.deepEqual(status.external_engines, [
    {
      name: 'second',
      kind: 'clamd',
      version: 'Test 1.0',
      is_required: false,
      is_open: true,
      fault: 'refused.',
      scans: 3,
      failures: 2,
      p50_ms: 1.3,
      p99_ms: null,
    },
  ])
  assert.deepEqual(status.disagreements, {
    count: 7,
    recent: [
      {
        at: '1970-01-01T00:00:00.000Z',
        sha256: 'ab',
        status: 'threat',
        found: 'second: A; second: B',
        clean: 'ClamAV',
      },
    ],
  })
  assert.deepEqual(toExternalStatus([{ name: 'ClamAV', state }], undefined), {
    external_engines: [],
    disagreements: { count: 0, recent: [] },
  })
})

test('readiness names an engine that does not answer, and what follows', async () => {
  assert.deepEqual(listExternalChecks(noExternal), [])
  const findFault = (...engines: ReturnType<typeof newExternal>[]) =>
    listExternalChecks({ ...noExternal, engines })[0]?.findFault()
  assert.equal(await findFault(newExternal('a', true, { breaker: 'closed' })), undefined)
  assert.equal(
    await findFault(newExternal('a', true)),
    'The engine a does not answer: refused. Scans fail until it does.',
  )
  assert.match(
    (await findFault(newExternal('a', true, { breaker: 'closed' }), newExternal('b', false))) ?? '',
    /^The engine b .* Verdicts are made without it until it does\.$/,
  )
})
