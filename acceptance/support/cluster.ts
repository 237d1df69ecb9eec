import { randomBytes } from 'node:crypto'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { world } from './origin.ts'
import { type Service, startService } from './start-service.ts'

/** Nodes that share a PostgreSQL, a key and a bucket, and nothing else. */
export async function openCluster() {
  const postgres = await openTestPostgres()
  const nodes: Service[] = []
  const apiKey = randomBytes(16).toString('hex')
  const shared = {
    ASSAY_DATABASE_URL: postgres.url,
    ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
    // Content up to 64 KB lies in the database: the bucket is not asked for it.
    ASSAY_BLOBS: 's3://assay-test?endpoint=http://127.0.0.1:9&region=test',
    ASSAY_OUTBOUND_ALLOW: world,
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROCESSES: '1',
  }
  return {
    apiKey,
    async start(roles: string, settings: NodeJS.ProcessEnv = {}): Promise<Service> {
      const node = await startService({ ...shared, ASSAY_ROLES: roles, ...settings })
      nodes.push(node)
      return node
    },
    async close() {
      await Promise.all(nodes.map((node) => node.stop()))
      await postgres.close()
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof openCluster>>
