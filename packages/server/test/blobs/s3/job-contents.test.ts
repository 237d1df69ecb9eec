import { after, before } from 'node:test'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../../../../scripts/test-s3.ts'
import { describeJobContents } from '../job-contents-contract.ts'
import { newCorner } from './store.ts'

const skip = lacksTestS3()
let store: TestS3
before(async () => {
  if (skip === false) store = await joinTestS3()
})
after(() => store?.close())

describeJobContents('in S3', {
  skip,
  // Sealed, 5_241_533 are exactly one part; one byte more needs two.
  sizes: [1, 65_536, 65_537, 300_000, 5_241_533, 5_241_534, 10_600_000],
  async newStorage(t) {
    const corner = newCorner(t, store)
    return {
      open: async (master) => (await corner.open(master)).contents,
      listStored: corner.listNames,
      findClear: corner.findClear,
      damage: corner.damage,
      cutOff: corner.cutOff,
    }
  },
})
