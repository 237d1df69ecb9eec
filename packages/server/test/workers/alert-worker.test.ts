import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AlertStore, ClaimedAlert } from '../../src/domain/ports/alert-store.ts'
import { openAlertWorker } from '../../src/workers/periodic-work.ts'
import { silentLog } from '../support/silent-log.ts'

const waiting: ClaimedAlert = {
  token: 'token',
  attempts: 0,
  channel: {
    id: 'channel',
    accountId: null,
    kind: 'slack',
    target: 'https://hooks.example.com/',
    secret: null,
    topics: ['engine'],
    threatsPerHour: 10,
  },
  message: { id: 'message', state: 'firing', topic: 'engine', text: 'It is down.', since: new Date() },
}

test('messages that are waiting are sent also while the look for conditions fails', { timeout: 60_000 }, async () => {
  const messages = [waiting]
  const recorded = Promise.withResolvers<string>()
  const store: Pick<AlertStore, 'update' | 'claim' | 'recordAttempt'> = {
    update: () => Promise.reject(new Error('A statement failed')),
    claim: async () => messages.splice(0),
    recordAttempt: async ({ message }) => recorded.resolve(message.id),
  }
  const worker = openAlertWorker({ store, send: async () => null, log: silentLog, isOutage: () => false })
  try {
    assert.equal(await recorded.promise, 'message')
  } finally {
    await worker.close()
  }
})
