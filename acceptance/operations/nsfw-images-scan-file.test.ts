import { testImageRules, testSizeLimit } from '../support/content-rules.ts'
import { testEveryOperation } from '../support/every-operation.ts'
import { testFileNameRules } from '../support/file-name-rules.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged, testScanOperation } from '../support/scan-operation.ts'
import { testUploadRules } from '../support/upload-rules.ts'
import { testCallbackIgnored } from '../support/url-rules.ts'

const subject = useOperation('Nsfw.Images.ScanFile')

testEveryOperation(subject)
testScanOperation(subject)
testUploadRules(subject)
testImageRules(subject)
testSizeLimit(subject, 8)
testFileNameRules(subject)
testCallbackIgnored(subject)
testNothingWasCharged(subject)
