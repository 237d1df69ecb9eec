import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findQuorum } from '../../src/config/setting.ts'
import { EngineDown, type EngineReport } from '../../src/domain/ports/engines.ts'
import {
  defaultVoteRule,
  isThreat,
  makeBallot,
  type Opinion,
  toEnginesText,
  type VoteRule,
} from '../../src/domain/scans/ballot.ts'
import { newEngine, newPolicy, nothing } from './scan-support.ts'

const rules: Record<string, Partial<VoteRule>> = {
  half: { heuristicWeight: 0.5 },
  mute: { heuristicWeight: 0 },
  heavy: { weight: 2, heuristicWeight: 2 },
  hints: { weight: 0, heuristicWeight: 1 },
  own: { heuristics: /^PUA\./, heuristicWeight: 0.5 },
}
const findRule = (engine: string): VoteRule => ({ ...defaultVoteRule, ...rules[engine] })

/**
 * Reads `a:X` as an engine that found X, `a` as one that found nothing, `a!` as one that failed, `a!X` as one that
 * found X and then failed, and `a?` as one that a filter kept away.
 */
function toOpinion(text: string): Opinion {
  const [, name = '', mark = '', found = ''] = /^(\w+)([!?:]?)(.*)$/.exec(text) ?? []
  const named = { ':': 'threat', '!': 'error', '?': 'skipped', '': 'clean' }[mark] as Opinion['verdict']
  const verdict = found === '' ? named : 'threat'
  const reason = mark === '!' ? { reason: 'away' } : {}
  return { name, verdict, findings: found === '' ? [] : [found], doubts: [], milliseconds: 1, ...reason }
}

const decide = (policy: string, opinions: string): string => {
  try {
    return isThreat(opinions.split(' ').map(toOpinion), newPolicy(policy), findRule) ? 'threat' : 'no threat'
  } catch (error) {
    assert.ok(error instanceof EngineDown)
    return 'error'
  }
}

const guess = 'Heuristics.X'

/** The verdict of each policy by the opinions of engines, of which those that failed are advisory. */
const table: [opinions: string, any: string, quorum2: string, quorum3: string][] = [
  ['a', 'no threat', 'no threat', 'no threat'],
  ['a b c', 'no threat', 'no threat', 'no threat'],
  // With one finding.
  ['a:X', 'threat', 'threat', 'threat'],
  ['a:X b', 'threat', 'no threat', 'no threat'],
  ['a:X b c', 'threat', 'no threat', 'no threat'],
  ['a b c:X', 'threat', 'no threat', 'no threat'],
  // More findings.
  ['a:X b:Y', 'threat', 'threat', 'threat'],
  ['a:X b:Y c', 'threat', 'threat', 'no threat'],
  ['a:X b:Y c:Z', 'threat', 'threat', 'threat'],
  // An engine that a filter kept away lowers the votes that are needed, and never makes a finding harmless.
  ['a:X b?', 'threat', 'threat', 'threat'],
  ['a:X b c?', 'threat', 'no threat', 'no threat'],
  ['a b?', 'no threat', 'no threat', 'no threat'],
  // An advisory engine that failed could have decided.
  ['a b!', 'no threat', 'error', 'error'],
  ['a b c!', 'no threat', 'no threat', 'error'],
  ['a:X b!', 'threat', 'error', 'error'],
  ['a:X b c!', 'threat', 'error', 'error'],
  ['a:X b c d!', 'threat', 'error', 'no threat'],
  ['a:X b:Y c!', 'threat', 'threat', 'error'],
  ['a:X b! c!', 'threat', 'error', 'error'],
  ['a! b!', 'error', 'error', 'error'],
  // An engine that found something before it failed has no second vote to give, but its weightier one.
  ['a!X b c', 'threat', 'no threat', 'no threat'],
  [`half!${guess} b c`, 'error', 'no threat', 'error'],
  [`a:${guess} half!${guess}`, 'threat', 'error', 'error'],
  // Guesses can be the only votes of an engine.
  [`mute:${guess} hints!`, 'error', 'error', 'error'],
  ['a:X b hints!', 'threat', 'error', 'error'],
  ['a hints!', 'no threat', 'no threat', 'no threat'],
  // Weights.
  [`half:${guess} b`, 'no threat', 'no threat', 'no threat'],
  ['half:X b', 'threat', 'no threat', 'no threat'],
  [`half:${guess} b:X`, 'threat', 'no threat', 'no threat'],
  [`half:${guess} b!`, 'error', 'error', 'error'],
  [`mute:${guess} b`, 'no threat', 'no threat', 'no threat'],
  [`mute:${guess}`, 'no threat', 'no threat', 'no threat'],
  [`a:${guess} b`, 'threat', 'no threat', 'no threat'],
  ['own:PUA.X b', 'no threat', 'no threat', 'no threat'],
  [`own:${guess} b`, 'threat', 'no threat', 'no threat'],
  ['heavy:X b c', 'threat', 'threat', 'no threat'],
  ['heavy:X b:Y c', 'threat', 'threat', 'threat'],
]

describe('the verdict policy', () => {
  for (const [opinions, ...verdicts] of table) {
    test(`${opinions}: any ${verdicts[0]}, quorum 2 ${verdicts[1]}, quorum 3 ${verdicts[2]}`, () => {
      assert.deepEqual(
        ['any', 'quorum 2', 'quorum 3'].map((policy) => decide(policy, opinions)),
        verdicts,
      )
    })
  }

  test('is any, or a quorum from 2 to 9', () => {
    assert.deepEqual(['any', 'quorum 2', 'quorum 9'].map(findQuorum), [1, 2, 9])
    for (const wrong of ['', 'all', 'quorum', 'quorum 0', 'quorum 1', 'quorum 10', 'quorum 2 ', 'Any']) {
      assert.equal(findQuorum(wrong), undefined)
    }
  })
})

const newReport = (change: Partial<EngineReport> = {}): EngineReport => ({ ...nothing, ...change })

describe('a ballot', () => {
  const open = () => makeBallot(newPolicy('quorum 2'), findRule)

  test('adds what an engine says of all contents, and decides when votes suffice', async () => {
    const ballot = open()
    const ask = (name: string, report: EngineReport) => ballot.ask(newEngine({ name }), async () => report)
    await ask('a', newReport({ isSkipped: true }))
    assert.equal(ballot.list()[0]?.verdict, 'skipped')
    await ask('a', newReport())
    await ask('a', newReport({ findings: ['X'] }))
    await ask('a', newReport({ findings: ['X', 'Y'] }))
    await ask('a', newReport())
    assert.equal(ballot.isDecided(), false)
    await ask('b', newReport({ findings: ['Z'] }))
    assert.equal(ballot.isDecided(), true)
    assert.deepEqual(
      ballot.list().map(({ name, verdict, findings }) => [name, verdict, findings]),
      [
        ['a', 'threat', ['X', 'Y']],
        ['b', 'threat', ['Z']],
      ],
    )
  })

  test('does not ask an advisory engine again that failed during the scan', async () => {
    const ballot = open()
    let calls = 0
    const ask = () =>
      ballot.ask(newEngine({ name: 'a' }), async () => {
        calls++
        return newReport({ failure: 'away' })
      })
    await ask()
    assert.equal((await ask()).failure, 'away')
    assert.deepEqual([calls, ballot.list()[0]?.verdict], [1, 'error'])
  })
})

test('metadata.engines is a JSON list that stays short, however much engines say', () => {
  const long: Opinion[] = Array.from({ length: 30 }, (_, i) => ({
    name: `engine-${i}`,
    verdict: 'threat',
    findings: Array(50).fill('x'.repeat(200)),
    doubts: [],
    milliseconds: 1.4,
  }))
  const [first] = JSON.parse(toEnginesText(long.slice(0, 1), () => 'Engine 1')) as { findings: string[] }[]
  assert.deepEqual(first, {
    name: 'engine-0',
    version: 'Engine 1',
    verdict: 'threat',
    milliseconds: 1,
    findings: Array(5).fill('x'.repeat(100)),
  })
  const text = toEnginesText(long, () => undefined)
  assert.ok(text.length < 4096)
  assert.equal((JSON.parse(text) as unknown[]).length, 30)
})
