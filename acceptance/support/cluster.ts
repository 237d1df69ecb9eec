import { randomBytes } from 'node:crypto'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { joinTestS3 } from '../../scripts/test-s3.ts'
import { world } from './origin.ts'
import { type Service, startService } from './start-service.ts'

/** A cluster of nodes that share a PostgreSQL, a master key and an S3 bucket. */
export async function openCluster() {
  const [postgres, s3] = await Promise.all([openTestPostgres(), joinTestS3()])
  const nodes: Service[] = []
  const apiKey = randomBytes(16).toString('hex')
  const shared = {
    ASSAY_DATABASE_URL: postgres.url,
    ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
    ASSAY_BLOBS: s3.toBlobsUrl(randomBytes(8).toString('hex')),
    ASSAY_S3_ACCESS_KEY: s3.accessKey,
    ASSAY_S3_SECRET_KEY: s3.secretKey,
    ASSAY_OUTBOUND_ALLOW: world,
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROCESSES: '1',
  }
  return {
    apiKey,
    /** Hears the notifications that the nodes send each other. */
    listen: () => postgres.listen('assay'),
    async start(roles: string, settings: NodeJS.ProcessEnv = {}): Promise<Service> {
      const node = await startService({ ...shared, ASSAY_ROLES: roles, ...settings })
      nodes.push(node)
      return node
    },
    async close() {
      await Promise.all(nodes.map((node) => node.stop()))
      await postgres.close()
      await s3.close()
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof openCluster>>
