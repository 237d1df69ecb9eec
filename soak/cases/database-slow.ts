import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'each message to and from PostgreSQL takes half a second for 15 s, then 2 s for 20 s',
  run: () =>
    withDatabase((proxy) =>
      underLoad({
        settings: { ASSAY_DATABASE_URL: proxy.url },
        async disturb() {
          proxy.setDelay(500)
          await pause(15_000)
          proxy.setDelay(2000)
          await pause(20_000)
          proxy.setDelay(0)
          return undefined
        },
      }),
    ),
}
