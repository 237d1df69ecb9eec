import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluate, type Scored } from '../../src/compose/evaluate-models.ts'

const newPicture = (name: string, label: Scored['label'], a: number, b?: number): Scored => ({
  name,
  label,
  scores: { a, b },
})

test('an evaluation counts, and finds the lowest threshold for a wanted rate', () => {
  const clean = Array.from({ length: 100 }, (_, i) => newPicture(`clean-${i}`, 'clean', i / 100, 0.1))
  const unsafe = [
    newPicture('x', 'pornography', 0.95, 0.2),
    newPicture('y', 'sexy', 0.3, 0.9),
    newPicture('z', 'sexy', 1),
  ]
  const { models, disagreements } = evaluate([...clean, ...unsafe], { a: 0.9, b: 0.5 }, 0.02)
  const [a, b] = models
  assert.ok(a && b)
  assert.deepEqual(a.distribution, [10, 10, 10, 11, 10, 10, 10, 10, 10, 12])
  assert.deepEqual([a.falsePositives.length, a.falsePositiveRate, a.falsePositives[0]?.picture], [10, 0.1, 'clean-99'])
  assert.deepEqual([a.missed, b.missed.map(({ picture }) => picture)], [[{ picture: 'y', score: 0.3 }], ['x']])
  // Two of a hundred may be threats: 0.98 and 0.99, but not 0.97.
  assert.equal(a.wantedThreshold, 0.9701)
  assert.equal(b.wantedThreshold, 0.1001)
  assert.deepEqual([b.scanned, b.unscanned], [102, ['z']])
  assert.equal(disagreements.length, 12)
})

test('without clean pictures, or with certain mistakes, there is no threshold for a rate', () => {
  const wanted = (scored: Scored[]) => evaluate(scored, { a: 0.7 }, 0).models[0]?.wantedThreshold
  assert.equal(wanted([newPicture('x', 'sexy', 0.5)]), undefined)
  assert.equal(wanted([newPicture('x', 'clean', 1)]), undefined)
  assert.equal(wanted([newPicture('x', 'clean', 0)]), 0.01)
})
