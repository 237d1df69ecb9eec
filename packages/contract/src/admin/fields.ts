import type { TSchema } from 'typebox'
import { maxCredits } from '../limits.ts'
import { Type } from '../type.ts'

/** Field schemas that the forms and responses of the admin API share. */
export const id = Type.String({ format: 'uuid' })
export const time = Type.String({ format: 'date-time' })
export const day = Type.String({ format: 'date' })
export const count = Type.Integer({ minimum: 0 })
export const text = Type.String()
export const flag = Type.Boolean()

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])

export const oneOf = <const V extends string>(...values: V[]) => Type.Unsafe<V>({ type: 'string', enum: values })

export const name = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S' })
export const email = Type.String({ format: 'email', maxLength: 254 })
export const password = Type.String({ minLength: 12, maxLength: 200 })
export const totpCode = Type.String({ pattern: '^[0-9]{6}$' })
/** A code of the authenticator app, or a recovery code, with or without its hyphens. */
export const signInCode = Type.String({ pattern: '^([0-9]{6}|([A-Za-z2-7]{4}[ -]?){3}[A-Za-z2-7]{4})$' })
export const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' })
/** A rate limit: requests per window, such as 600/1m. */
export const rate = Type.String({ pattern: '^[1-9][0-9]{0,8}/[1-9][0-9]{0,3}[smhd]$' })
export const credits = Type.Integer({ minimum: 0, maximum: maxCredits })
export const webAddress = Type.String({ pattern: '^https?://', maxLength: 2048 })
export const reason = Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' })

export const scanKind = oneOf('malware', 'nsfw_image')
export const scanStatus = oneOf('pending', 'clean', 'threat', 'error')

/** One page of a list, newest first. `next` is the cursor of the following page, null on the last. */
export const page = <S extends TSchema>(item: S) => Type.Object({ items: Type.Array(item), next: nullable(text) })
export const pageQuery = {
  cursor: Type.Optional(Type.String({ maxLength: 200 })),
  limit: Type.Optional(Type.String({ pattern: '^([1-9]|[1-9][0-9]|100)$' })),
}
