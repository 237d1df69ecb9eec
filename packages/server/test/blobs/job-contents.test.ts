import { copyFileSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { describeJobContents } from './job-contents-contract.ts'
import { newTestDir } from './test-dir.ts'

describeJobContents('on a disk', {
  skip: false,
  sizes: [1, 65_535, 65_536, 65_537, 70_000, 131_072, 300_000],
  async newStorage(t) {
    const dir = join(newTestDir(t), 'jobs')
    const listFiles = () => readdirSync(dir).filter((name) => name !== 'store-id')
    return {
      open: (master) => makeDiskJobContents({ dir, master }),
      listStored: async () => listFiles(),
      findClear: async (marker) => listFiles().filter((name) => readFileSync(join(dir, name)).includes(marker)),
      async damage(key, place) {
        const bytes = readFileSync(join(dir, key))
        bytes[place] = (bytes[place] ?? 0) ^ 1
        writeFileSync(join(dir, key), bytes)
      },
      cutOff: async (key, bytes) => truncateSync(join(dir, key), bytes),
      replace: async (key, other) => copyFileSync(join(dir, other), join(dir, key)),
    }
  },
})
