import type { TSchema } from 'typebox'
import type { Access } from './access.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Schemas of a route. A route without `answer` responds with 204. */
type Schemas = { query?: TSchema; body?: TSchema; answer?: TSchema }

export type Route = Schemas & {
  method: Method
  /** Path below /admin/v1, with parameters in braces. */
  path: string
  access: Access
  /** True if members of a suspended account may use the route. */
  servesSuspended?: boolean
  summary: string
}

type ObjectSchema = TSchema & { properties?: Record<string, TSchema>; items?: TSchema }

/** The schema of a row of a list: of an array, or of a page with `items` and `next`. Other routes have none. */
export function findRowSchema({ method, answer }: Pick<Route, 'method' | 'answer'>): ObjectSchema | undefined {
  if (method !== 'GET' || answer === undefined) return undefined
  const { properties, items } = answer as ObjectSchema
  const rows = properties?.next === undefined ? undefined : (properties.items as ObjectSchema | undefined)
  return items ?? rows?.items
}

/** Every list can be exported with `?format=`: all pages, or what a list without pages shows. */
export const exportFormats = ['csv', 'json'] as const

const make =
  <M extends Method>(method: M) =>
  <P extends string, A extends Access, S extends Schemas = Record<never, never>>(
    path: P,
    access: A,
    summary: string,
    schemas?: S,
  ) => ({ method, path, access, summary, ...(schemas as S) })

export const get = make('GET')
export const post = make('POST')
export const put = make('PUT')
export const patch = make('PATCH')
export const remove = make('DELETE')
