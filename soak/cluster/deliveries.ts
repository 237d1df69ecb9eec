import assert from 'node:assert/strict'
import type { ScanResult } from '@assay/contract'
import { type Received, type Receiver, verifyDelivery } from '../../acceptance/support/receiver.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'

type Delivered = { path: string; webhookId: string; body: string; result: ScanResult }

/** Verifies webhooks as they arrive, because a signature is valid for minutes only. */
export function watchDeliveries(receiver: Receiver, toSecret: (path: string) => string) {
  const delivered: Delivered[] = []
  let fault: Error | undefined
  const verifyReceived = () => {
    for (const request of receiver.received.splice(0)) {
      try {
        delivered.push(toDelivered(request, toSecret(request.path)))
      } catch (error) {
        fault ??= error as Error
      }
    }
  }
  const timer = setInterval(verifyReceived, 200)

  return {
    /** Checks that each of these results was delivered, unchanged and under one id, and nothing else. */
    async check(expected: Map<string, ScanResult>): Promise<string> {
      const isComplete = () => {
        verifyReceived()
        const deliveredIds = new Set(delivered.map(({ result }) => result.id))
        return fault !== undefined || [...expected.keys()].every((id) => deliveredIds.has(id))
      }
      await waitUntil('every callback', isComplete, 90_000)
      if (fault !== undefined) throw fault
      const bodies = new Map<string, string>()
      for (const { webhookId, body, result } of delivered) {
        assert.deepEqual(result, expected.get(result.id))
        assert.equal(bodies.get(webhookId) ?? body, body, 'the same bytes every time')
        bodies.set(webhookId, body)
      }
      assert.equal(bodies.size, expected.size, 'one delivery a job')
      return `${expected.size} callbacks, all signed, ${delivered.length - expected.size} of them delivered twice`
    },
    end: () => clearInterval(timer),
  }
}

const toDelivered = (request: Received, secret: string): Delivered => ({
  path: request.path,
  webhookId: String(request.headers['webhook-id']),
  body: request.body.toString(),
  result: verifyDelivery(request, secret),
})
