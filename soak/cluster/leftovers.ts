import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { grepFiles } from '../../acceptance/support/content-files.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import type { Nodes } from './nodes.ts'

type Deps = {
  nodes: Nodes
  marker: string
  /** Directories of the database and of the store. */
  dirs: string[]
  /** Lists the names of the objects in the store. */
  listNames(): Promise<string[]>
}

const library = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`

export function requireFaketime() {
  if (!existsSync(library)) throw new Error('Install faketime first: apt-get install faketime')
}

/**
 * Checks that no content is left in clear. The store may keep content of a request that crashed until it is old enough
 * to be an orphan: a node whose clock is a day ahead removes it, and then nothing is left.
 */
export async function checkLeftovers({ nodes, marker, dirs, listNames }: Deps): Promise<string> {
  for (const { installation } of nodes.nodes) await installation.stop()
  const places = [
    ...dirs,
    ...nodes.nodes.flatMap(({ installation: { dataDir, temporaryDir } }) => [dataDir, temporaryDir]),
  ]
  for (const dir of places) assert.deepEqual(grepFiles(dir, Buffer.from(marker)), [], 'nothing is there in clear')
  for (const { name, installation } of nodes.nodes) assert(!installation.log().includes(marker), `the log of ${name}`)
  const orphans = (await listNames()).length
  const clock = ['FAKETIME=+25h', 'FAKETIME_DONT_FAKE_MONOTONIC=1', 'DONT_FAKE_MONOTONIC=1']
  const sweeper = await nodes.open('sweeper', 'api,worker', ['env', `LD_PRELOAD=${library}`, ...clock])
  await waitUntil('the sweeper to empty the store', async () => (await listNames()).length === 0, 120_000)
  await sweeper.stop()
  for (const { name, installation } of nodes.nodes) {
    assert.deepEqual(installation.listProcesses(), [], `processes of ${name}`)
  }
  return `${orphans} orphans lay in the store, encrypted, and were swept`
}
