import { makeMasterKey } from '../../src/blobs/master-key.ts'
import type { Sealer } from '../../src/domain/ports/secret-store.ts'

const bytes = Buffer.alloc(32, 1)
export const testMasterKey = makeMasterKey(bytes)
/** The value of ASSAY_MASTER_KEY for programs on the database of a test. */
export const testMasterKeyText = bytes.toString('hex')

/** Seals with a real master key, the same in all tests. */
export const testSealer: Sealer = {
  seal: async (clear, binding) => testMasterKey.seal(clear, binding),
  open: async (sealed, binding) => testMasterKey.open(sealed, binding),
}
