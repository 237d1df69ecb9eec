import { describe } from 'node:test'
import { operations } from '@assay/contract'
import { testEveryOperation } from '../support/every-operation.ts'
import { testFileNameRules } from '../support/file-name-rules.ts'
import { testJsonRules } from '../support/json-rules.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged, testScanOperation } from '../support/scan-operation.ts'
import { alreadyTested } from '../support/scanning.ts'
import { testCallbackIgnored, testUrlRules } from '../support/url-rules.ts'

for (const operation of operations) {
  if (operation.does !== 'url') continue
  describe(operation.id, () => {
    const subject = useOperation(operation.id)
    testEveryOperation(subject)
    testScanOperation(subject)
    if (operation.mode === 'sync') testCallbackIgnored(subject)
    describe('reads its body by the rules', { skip: alreadyTested }, () => {
      testJsonRules(subject)
      testFileNameRules(subject)
      testUrlRules(subject, 'file_url')
      if (operation.mode === 'async') testUrlRules(subject, 'callback_url')
    })
    testNothingWasCharged(subject)
  })
}
