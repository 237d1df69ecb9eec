import { describe } from 'node:test'
import { operations } from '@assay/contract'
import { testAnyContent, testImageRules, testSizeLimit } from '../support/content-rules.ts'
import { testEveryOperation } from '../support/every-operation.ts'
import { testFileNameRules } from '../support/file-name-rules.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged, testScanOperation } from '../support/scan-operation.ts'
import { testUploadRules } from '../support/upload-rules.ts'
import { testCallbackIgnored, testUrlRules } from '../support/url-rules.ts'

/** The limits of the interface in MB, written here again so that a change of the contract is noticed. */
const maxMegabytes = { malware: { sync: 100, async: 250 }, nsfw_image: { sync: 8, async: 16 } }

for (const operation of operations) {
  if (operation.does !== 'file') continue
  const { id, kind, mode } = operation
  describe(id, () => {
    const subject = useOperation(id)
    testEveryOperation(subject)
    testScanOperation(subject)
    testUploadRules(subject)
    if (kind === 'malware') testAnyContent(subject)
    else testImageRules(subject)
    testSizeLimit(subject, maxMegabytes[kind][mode])
    testFileNameRules(subject)
    if (mode === 'sync') testCallbackIgnored(subject)
    else testUrlRules(subject, 'callback_url')
    testNothingWasCharged(subject)
  })
}
