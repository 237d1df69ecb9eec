import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { underClusterLoad } from '../cluster/under-load.ts'

export const soak: Case = {
  about:
    '2 API and 2 worker nodes; S3 answers a third of all calls with 503 and cuts a tenth, then answers nothing but 503',
  run: () =>
    underClusterLoad(async ({ s3 }) => {
      s3.set({ busy: 0.33, cut: 0.1 })
      await pause(20_000)
      s3.set({ busy: 1 })
      await pause(10_000)
      s3.set({})
      return s3.toText()
    }),
}
