import { accountRoutes } from './account-routes.ts'
import { operatorRoutes } from './operator-routes.ts'
import type { Route } from './route.ts'
import { sessionRoutes } from './session-routes.ts'

/** Everything the console does, one row a route: scripts can do the same. Checks, OpenAPI and tests are made from this table. */
export const adminRoutes = { ...sessionRoutes, ...accountRoutes, ...operatorRoutes } satisfies Record<string, Route>

export type AdminRouteName = keyof typeof adminRoutes

export const adminPath = '/admin/v1'
/** The scan page: below it the same operations as below /v1, with the session in place of a key. */
export const consoleScanPath = '/admin/v1/scan'
