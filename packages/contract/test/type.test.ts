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
  union: type.Union([type.String(), type.Null()]),
})

test('a record is a map for client generators', () => {
  const schema = Type.Record(Type.String(), Type.Integer(), { description: 'Counts' })
  assert.deepEqual(schema, { type: 'object', additionalProperties: { type: 'integer' }, description: 'Counts' })
})

test('other schemas are those of typebox', () => {
  assert.equal(JSON.stringify(build(Type)), JSON.stringify(build(Typebox)))
})
