import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'every connection to PostgreSQL is cut, and none can be made for 10 s',
  run: () =>
    withDatabase((proxy) =>
      underLoad({
        settings: { ASSAY_DATABASE_URL: proxy.url },
        async disturb() {
          proxy.setMode('cut')
          await pause(10_000)
          proxy.setMode('pass')
          return undefined
        },
      }),
    ),
}
