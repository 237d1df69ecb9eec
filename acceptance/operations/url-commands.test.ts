import { describe } from 'node:test'
import { operations } from '@assay/contract'
import { testEveryOperation } from '../support/every-operation.ts'
import { testFileNameRules } from '../support/file-name-rules.ts'
import { testJsonRules } from '../support/json-rules.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged, testScanOperation } from '../support/scan-operation.ts'
import { testCallbackIgnored, testUrlRules } from '../support/url-rules.ts'

for (const operation of operations) {
  if (operation.does !== 'url') continue
  describe(operation.id, () => {
    const subject = useOperation(operation.id)
    testEveryOperation(subject)
    testScanOperation(subject)
    testJsonRules(subject)
    testFileNameRules(subject)
    testUrlRules(subject, 'file_url')
    if (operation.mode === 'sync') testCallbackIgnored(subject)
    else testUrlRules(subject, 'callback_url')
    testNothingWasCharged(subject)
  })
}
