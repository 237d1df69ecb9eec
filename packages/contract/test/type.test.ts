import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type as Typebox } from 'typebox'
import { Type } from '../src/type.ts'

const build = (type: typeof Type) => ({
  plain: [type.Boolean(), type.Integer({ minimum: 0 }), type.Null(), type.Number(), type.String({ format: 'uuid' })],
  array: type.Array(type.String(), { description: 'Names' }),
  empty: type.Object({}),
  optional: type.Object({ note: type.Optional(type.String()) }),
  object: type.Object(
    { id: type.String(), kind: type.Optional(type.Unsafe<'a'>({ type: 'string', enum: ['a'] })), at: type.String() },
    { additionalProperties: false },
  ),
  record: type.Record(type.String(), type.Array(type.Integer()), { description: 'Counts' }),
  union: type.Union([type.String(), type.Null()]),
})

test('schemas are those of typebox', () => {
  assert.equal(JSON.stringify(build(Type)), JSON.stringify(build(Typebox)))
})
