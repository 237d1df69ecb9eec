import type { TSchema, Type as Typebox } from 'typebox'

type Options = Record<string, unknown>
type Builder = Pick<
  typeof Typebox,
  'Array' | 'Boolean' | 'Integer' | 'Null' | 'Number' | 'Object' | 'Optional' | 'Record' | 'String' | 'Union' | 'Unsafe'
>

/** Names a property of an optional schema that JSON does not show; `Object` reads it to list the required properties. */
const optional = '~optional'
const isOptional = (schema: object) => Reflect.get(schema, optional) === true
const newPlain = (type: string) => (options?: Options) => ({ type, ...options })

/**
 * Builds the schemas that typebox would build, with its types, except for `Record`: client generators know maps by
 * `additionalProperties` and make nothing of `patternProperties`. The package itself is 540 modules, which take a
 * quarter of a second of processor time to load: half of the time of an operator's command.
 */
export const Type = {
  Boolean: newPlain('boolean'),
  Integer: newPlain('integer'),
  Null: newPlain('null'),
  Number: newPlain('number'),
  String: newPlain('string'),
  Array: (items: TSchema, options?: Options) => ({ type: 'array', items, ...options }),
  Object(properties: Record<string, TSchema>, options?: Options) {
    const required = Object.keys(properties).filter((key) => !isOptional(properties[key] as TSchema))
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
  },
  Optional: (schema: TSchema) => Object.defineProperty({ ...schema }, optional, { value: true }),
  Record: (_keys: TSchema, value: TSchema, options?: Options) => ({
    type: 'object',
    additionalProperties: value,
    ...options,
  }),
  Union: (anyOf: TSchema[], options?: Options) => ({ anyOf, ...options }),
  Unsafe: (schema: TSchema) => ({ ...schema }),
} as unknown as Builder
