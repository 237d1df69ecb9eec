import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { engineOptions } from '../../packages/server/src/engines/child-process/engine-options.ts'
import { defaultSuspicion } from '../../packages/server/src/engines/nsfw/image-engine.ts'
import { builtDir } from '../../packages/server/src/engines/nsfw/models/manifest.ts'
import { openModels } from '../../packages/server/src/engines/nsfw/models/open-models.ts'
import type { Opening } from '../../packages/server/src/engines/nsfw/requests.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { type Cpu, openChildren, type Server, sum, whenIdle } from './children.ts'
import type { FloorJob, FloorResult } from './nsfw-floor.ts'
import type { PictureJob, PictureResult } from './nsfw-load.ts'
import { listTree, readCommandLine, readCpuSeconds, readName } from './processes.ts'

/** Peers with nsfwjs behind an upload route, with their backend, decoder and number of processes. */
const peerArgs = {
  wasm: ['wasm', 'jpeg-js'],
  kind: ['wasm', 'sharp', String(availableParallelism())],
  script: ['cpu', 'jpeg-js'],
}
export type NsfwPeer = keyof typeof peerArgs
export type Setting = Awaited<ReturnType<typeof openSetting>>

/** Score from which the service consults its second model. */
const suspicion = defaultSuspicion

/** The service as a user starts it and its peers, each in processes of its own. The caller closes it. */
export async function openSetting(options: {
  peers: NsfwPeer[]
  hasFloor: boolean
  settings?: Record<string, string>
}) {
  const { startService, startServer, startWorker, dir, close } = openChildren()
  try {
    const service = await startService('/v1/nsfw/images/scan/file', options.settings)
    const peers: Partial<Record<NsfwPeer, Server>> = {}
    for (const name of options.peers)
      peers[name] = await startServer(new URL('./nsfw-peer.ts', import.meta.url), peerArgs[name])
    const opening = options.hasFloor ? JSON.stringify(await toOpening(service.dataDir)) : ''
    const floor = Array.from({ length: options.hasFloor ? availableParallelism() : 0 }, () =>
      startWorker<FloorJob, FloorResult>(new URL('./nsfw-floor.ts', import.meta.url), [opening]),
    )
    const load = startWorker<PictureJob, PictureResult>(new URL('./nsfw-load.ts', import.meta.url))
    const cpu: Cpu = () => {
      const parts = { service: 0, children: 0, database: 0, engine: 0 }
      for (const pid of listTree(service.pid)) parts[toPart(pid)] += readCpuSeconds(pid)
      return {
        ...parts,
        ...Object.fromEntries(
          Object.entries(peers).map(([name, { pid }]) => [name, sum(listTree(pid).map(readCpuSeconds))]),
        ),
        floor: sum(floor.map(({ pid }) => readCpuSeconds(pid))),
        load: readCpuSeconds(load.pid),
      }
    }
    const getPeer = (name: NsfwPeer): Server => {
      const peer = peers[name]
      if (peer === undefined) throw new Error(`${name} was not started`)
      return peer
    }
    return { dir, service, getPeer, floor, load, cpu, whenIdle: () => whenIdle(cpu), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Lists the processes that scan pictures: the service and its image processes, without database and clamd. */
export const listImageProcesses = (root: number) =>
  listTree(root).filter((pid) => toPart(pid) === 'service' || toPart(pid) === 'children')

function toPart(pid: number): 'service' | 'children' | 'database' | 'engine' {
  const name = readName(pid)
  if (name === 'postgres') return 'database'
  if (name === 'clamd') return 'engine'
  return readCommandLine(pid).includes('/nsfw/child/') ? 'children' : 'service'
}

/** The default models and profile of the service. */
async function toOpening(dataDir: string): Promise<Opening> {
  const { config } = loadConfig(process.env)
  const { nsfwProfile: profile, nsfwPrecision: precision } = config
  if (profile === 'off') throw new Error('The service looks at no pictures')
  const models = await openModels({
    dirs: config.modelDir === undefined ? [builtDir, join(dataDir, 'models')] : [config.modelDir],
    names: ['mobilenet-v2-mid', 'inception-v3'],
    precision,
    log: makeLogger({ level: 'warn', region: config.region }),
  })
  const [first, second] = models
  if (first === undefined) throw new Error('There are no models')
  return { models: { first, second }, profile, suspicion, budgetMs: engineOptions.images.budgetMs[profile] }
}
