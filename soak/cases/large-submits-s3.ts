import { randomBytes } from 'node:crypto'
import { openTestS3 } from '../../scripts/test-s3.ts'
import type { Case } from '../case.ts'
import { submitDescription, submitLarge } from '../large-submits.ts'

export const soak: Case = {
  about: `${submitDescription}; content goes to S3 and comes back from there`,
  async run() {
    const store = await openTestS3()
    try {
      return await submitLarge({
        ASSAY_BLOBS: store.toBlobsUrl('large'),
        ASSAY_S3_ACCESS_KEY: store.accessKey,
        ASSAY_S3_SECRET_KEY: store.secretKey,
        ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
      })
    } finally {
      await store.close()
    }
  },
}
