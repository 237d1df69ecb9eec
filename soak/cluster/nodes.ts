import { randomBytes } from 'node:crypto'
import { type Installation, openInstallation } from '../../acceptance/support/chaos-installation.ts'
import { world } from '../../acceptance/support/origin.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'

import { isReady } from '../health.ts'
export const apiKey = 'soak-test-key'
export const secret = `whsec_${randomBytes(32).toString('base64')}`

/** `name` is shown in reports. */
export type Node = { name: string; installation: Installation }
type Shared = { databaseUrl: string; blobsUrl: string; accessKey: string; secretKey: string }

/** Two API and two worker nodes that share a PostgreSQL, a master key and a bucket. A restart keeps the address. */
export async function openNodes({ databaseUrl, blobsUrl, accessKey, secretKey }: Shared) {
  const settings = {
    ASSAY_DATABASE_URL: databaseUrl,
    ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
    ASSAY_BLOBS: blobsUrl,
    ASSAY_S3_ACCESS_KEY: accessKey,
    ASSAY_S3_SECRET_KEY: secretKey,
    ASSAY_OUTBOUND_ALLOW: world,
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_BOOTSTRAP_WEBHOOK_SECRET: secret,
    ASSAY_WEBHOOK_RETRIES: Array(20).fill('1s').join(),
    ASSAY_NSFW_PROCESSES: '1',
    ASSAY_LOG_LEVEL: 'warn',
  }
  const nodes: Node[] = []
  const open = async (name: string, roles: string, under: string[] = []) => {
    const installation = await openInstallation({ ...settings, ASSAY_ROLES: roles }, { under })
    nodes.push({ name, installation })
    return installation
  }
  const close = async () => {
    for (const { installation } of nodes) await installation.remove()
  }
  try {
    // The first node creates the tables and the account.
    const first = await open('api 1', 'api')
    const second = await open('api 2', 'api')
    await Promise.all([open('worker 1', 'worker'), open('worker 2', 'worker')])
    return { nodes, apis: [first, second] as const, open, close, whenReady: () => whenReady(nodes) }
  } catch (error) {
    await close()
    throw error
  }
}

export type Nodes = Awaited<ReturnType<typeof openNodes>>

async function whenReady(nodes: Node[]) {
  for (const { name, installation } of nodes) {
    await waitUntil(`${name} to be ready`, () => isReady(installation.url), 60_000)
  }
}
