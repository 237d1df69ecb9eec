import assert from 'node:assert/strict'
import type { ScanResult } from '@assay/contract'
import { type Received, type Receiver, verifyDelivery } from '../../acceptance/support/receiver.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'

type Delivered = { path: string; webhookId: string; body: string; result: ScanResult }

/** Verifies webhooks as they arrive, because a signature is valid for minutes only. */
export function watchDeliveries(receiver: Receiver, toSecret: (path: string) => string) {
  const delivered: Delivered[] = []
  let fault: Error | undefined
  const look = () => {
    for (const one of receiver.received.splice(0)) {
      try {
        delivered.push(toDelivered(one, toSecret(one.path)))
      } catch (error) {
        fault ??= error as Error
      }
    }
  }
  const timer = setInterval(look, 200)

  return {
    /** Checks that each of these results was delivered, unchanged and under one id, and nothing else. */
    async check(expected: Map<string, ScanResult>): Promise<string> {
      const isTold = () => {
        look()
        const told = new Set(delivered.map(({ result }) => result.id))
        return fault !== undefined || [...expected.keys()].every((id) => told.has(id))
      }
      await waitUntil('every callback', isTold, 90_000)
      if (fault !== undefined) throw fault
      const bodies = new Map<string, string>()
      for (const { webhookId, body, result } of delivered) {
        assert.deepEqual(result, expected.get(result.id))
        assert.equal(bodies.get(webhookId) ?? body, body, 'the same bytes every time')
        bodies.set(webhookId, body)
      }
      assert.equal(bodies.size, expected.size, 'one delivery a job')
      return `${expected.size} callbacks, all signed, ${delivered.length - expected.size} of them told twice`
    },
    end: () => clearInterval(timer),
  }
}

const toDelivered = (one: Received, secret: string): Delivered => ({
  path: one.path,
  webhookId: String(one.headers['webhook-id']),
  body: one.body.toString(),
  result: verifyDelivery(one, secret),
})
