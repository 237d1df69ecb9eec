import { test } from 'node:test'
import { testEveryOperation } from '../support/every-operation.ts'
import { useOperation } from '../support/operation.ts'
import { assertEmpty } from '../support/problems.ts'
import { testNothingWasCharged } from '../support/scan-operation.ts'

const subject = useOperation('General.Ping')

test('200: a good key is answered with an empty body', async () => {
  assertEmpty(await subject.sendGood(), 200)
})

test('HEAD is answered as GET is', async () => {
  assertEmpty(await subject.send({ method: 'HEAD' }), 200)
})

testEveryOperation(subject)
testNothingWasCharged(subject)
