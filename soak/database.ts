import { openDatabaseProxy } from '../acceptance/support/tcp-proxy.ts'
import { openTestPostgres } from '../scripts/test-postgres.ts'

/** An external PostgreSQL behind a network that can be disturbed. */
export async function withDatabase<T>(
  use: (proxy: Awaited<ReturnType<typeof openDatabaseProxy>>) => Promise<T>,
): Promise<T> {
  const postgres = await openTestPostgres()
  const proxy = await openDatabaseProxy(postgres.url)
  try {
    return await use(proxy)
  } finally {
    await proxy.close()
    await postgres.close()
  }
}
