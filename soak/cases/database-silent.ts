import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'the network to PostgreSQL drops all packets for 15 s without an error; then the connections are reset',
  run: () =>
    withDatabase((proxy) =>
      underLoad({
        settings: { ASSAY_DATABASE_URL: proxy.url },
        async disturb() {
          proxy.setMode('hold')
          await pause(15_000)
          proxy.setMode('cut')
          proxy.setMode('pass')
          return undefined
        },
      }),
    ),
}
