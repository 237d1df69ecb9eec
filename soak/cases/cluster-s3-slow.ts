import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { underClusterLoad } from '../cluster/under-load.ts'

export const soak: Case = {
  about: '2 API and 2 worker nodes; every call to S3 takes a second longer, then 20 seconds',
  run: () =>
    underClusterLoad(async ({ s3 }) => {
      s3.set({ delayMs: 1000 })
      await pause(20_000)
      s3.set({ delayMs: 20_000 })
      await pause(20_000)
      s3.set({})
      return s3.toText()
    }),
}
