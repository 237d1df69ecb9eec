import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { mountSmallDisk } from '../small-disk.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'the disk of the data directory is full to the last byte for 10 s, with PostgreSQL on another',
  async run() {
    let disk: ReturnType<typeof mountSmallDisk> | undefined
    return withDatabase((proxy) =>
      underLoad({
        settings: { ASSAY_DATABASE_URL: proxy.url },
        prepare(dataDir) {
          disk = mountSmallDisk(dataDir, 256)
          return disk.unmount
        },
        async disturb() {
          await disk?.fill()
          await pause(10_000)
          disk?.empty()
          return undefined
        },
      }),
    )
  },
}
