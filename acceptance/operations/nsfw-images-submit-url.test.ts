import { testEveryOperation } from '../support/every-operation.ts'
import { testFileNameRules } from '../support/file-name-rules.ts'
import { testJsonRules } from '../support/json-rules.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged, testScanOperation } from '../support/scan-operation.ts'
import { testUrlRules } from '../support/url-rules.ts'

const subject = useOperation('Nsfw.Images.SubmitUrl')

testEveryOperation(subject)
testScanOperation(subject)
testJsonRules(subject)
testFileNameRules(subject)
testUrlRules(subject, 'file_url')
testUrlRules(subject, 'callback_url')
testNothingWasCharged(subject)
