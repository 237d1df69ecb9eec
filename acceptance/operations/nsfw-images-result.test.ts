import { testEveryOperation } from '../support/every-operation.ts'
import { useOperation } from '../support/operation.ts'
import { testResultRules } from '../support/result-rules.ts'
import { testNothingWasCharged } from '../support/scan-operation.ts'

const subject = useOperation('Nsfw.Images.GetResult')

testEveryOperation(subject)
testResultRules(subject)
testNothingWasCharged(subject)
