import { accountRoutes } from './account-routes.ts'
import { operatorRoutes } from './operator-routes.ts'
import type { Route } from './route.ts'
import { sessionRoutes } from './session-routes.ts'

/** The whole admin API. Request validation, OpenAPI and the acceptance tests are built from this table. */
export const adminRoutes = { ...sessionRoutes, ...accountRoutes, ...operatorRoutes } satisfies Record<string, Route>

export type AdminRouteName = keyof typeof adminRoutes

export const adminPath = '/admin/v1'
/** Prefix under which the scan page calls the operations of /v1 with its session instead of an API key. */
export const consoleScanPath = '/admin/v1/scan'
