import assert from 'node:assert/strict'
import { grepFiles } from '../../acceptance/support/content-files.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import type { Nodes } from './nodes.ts'
import type { S3Faults } from './s3-faults.ts'

type Deps = {
  nodes: Nodes
  s3: Pick<S3Faults, 'set'>
  marker: string
  /** Directories of the database and of the store. */
  dirs: string[]
  /** Lists the names of the objects in the store. */
  listNames(): Promise<string[]>
}

/**
 * Checks that no content is left in clear. The store may keep content of a request that crashed until it is old enough
 * to be an orphan: when the store says that all is a day older, a node removes it, and then nothing is left.
 */
export async function checkLeftovers({ nodes, s3, marker, dirs, listNames }: Deps): Promise<string> {
  for (const { installation } of nodes.nodes) await installation.stop()
  const places = [
    ...dirs,
    ...nodes.nodes.flatMap(({ installation: { dataDir, temporaryDir } }) => [dataDir, temporaryDir]),
  ]
  for (const dir of places) assert.deepEqual(grepFiles(dir, Buffer.from(marker)), [], 'nothing is there in clear')
  for (const { name, installation } of nodes.nodes) assert(!installation.log().includes(marker), `the log of ${name}`)
  const orphans = (await listNames()).length
  s3.set({ agedMs: 25 * 3_600_000 })
  const sweeper = await nodes.open('sweeper', 'api,worker')
  await waitUntil('the sweeper to empty the store', async () => (await listNames()).length === 0, 120_000)
  await sweeper.stop()
  for (const { name, installation } of nodes.nodes) {
    assert.deepEqual(installation.listProcesses(), [], `processes of ${name}`)
  }
  return `${orphans} orphans lay in the store, encrypted, and were swept`
}
