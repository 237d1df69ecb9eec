import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { underClusterLoad } from '../cluster/under-load.ts'

export const soak: Case = {
  about: '2 API and 2 worker nodes; their PostgreSQL is restarted, once as an operator does it and once by kill -9',
  run: () =>
    underClusterLoad(async ({ postgres }) => {
      await postgres.restart('SIGINT')
      await pause(10_000)
      await postgres.restart('SIGKILL')
      await pause(10_000)
      return undefined
    }),
}
