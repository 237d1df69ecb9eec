import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { underClusterLoad } from '../cluster/under-load.ts'

/** ASSAY_SOAK_KILLS sets the number of kills of all nodes together. */
const kills = Number(process.env.ASSAY_SOAK_KILLS ?? 20)

export const soak: Case = {
  about:
    '2 API and 2 worker nodes over PostgreSQL and S3; any one of them gets kill -9, twenty times, and is started again',
  run: () =>
    underClusterLoad(async ({ nodes, random, onKilled }) => {
      const victims = random.shuffle(
        nodes.nodes.flatMap((node) => Array(Math.ceil(kills / 4)).fill(node) as (typeof node)[]),
      )
      for (const { installation } of victims) {
        await pause(random.between(500, 4000))
        await installation.kill()
        onKilled()
        await installation.start()
      }
      return `${victims.length} kills`
    }),
}
