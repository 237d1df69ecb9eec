import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { mountSmallDisk } from '../small-disk.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'the disk of our own PostgreSQL, and of everything else, is full to the last byte for 15 s',
  async run() {
    let disk: ReturnType<typeof mountSmallDisk> | undefined
    return underLoad({
      prepare(dataDir) {
        disk = mountSmallDisk(dataDir, 512)
        return disk.unmount
      },
      async disturb() {
        // Fills the space again that the database and the load released.
        for (let i = 0; i < 15; i++) {
          await disk?.fill()
          await pause(1000)
        }
        disk?.empty()
        return undefined
      },
    })
  },
}
