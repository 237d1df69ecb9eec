import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type CreditGate, makeAdmission, makeRecentCallers } from '../../src/domain/accounts/admission.ts'
import type { KeyRestrictions } from '../../src/domain/accounts/keys.ts'
import { makeResultWaiters, makeScanning } from '../../src/domain/scans/scanning.ts'
import { makeSubmitting } from '../../src/domain/scans/submitting.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

/** Seconds. Such a rate window does not end during a test, even if the machine stands still for minutes. */
const day = 86_400

describe('an account without credits', () => {
  let stores: TestStores
  let apiKey: string
  before(async () => {
    stores = await openTestStores()
    apiKey = (await stores.register({ credits: 0 })).apiKey
  })
  after(() => stores.close())

  const admit = async (creditGate: CreditGate, isScan: boolean) => {
    const { refused } = await makeAdmission({
      gate: stores.gate,
      creditGate,
      recentCallers: makeRecentCallers(),
    }).admitRequest([apiKey], { action: isScan ? 'scan' : 'none', kind: 'malware', address: '' })
    return refused?.refusal.kind
  }

  test('is refused every request by default', async () => {
    assert.equal(await admit('all', false), 'out-of-credit')
    assert.equal(await admit('all', true), 'out-of-credit')
  })

  test('is refused scans alone when the operator says so', async () => {
    assert.equal(await admit('scans', false), undefined)
    assert.equal(await admit('scans', true), 'out-of-credit')
  })
})

describe('a caller of the fast path whose key was restricted meanwhile', () => {
  let stores: TestStores
  before(async () => {
    stores = await openTestStores()
  })
  after(() => stores.close())

  const address = '192.0.2.1'
  const unused = () => {
    throw new Error('This test does without')
  }
  const clock = { now: () => new Date() }
  const request = { kind: 'malware', address, contentName: null, idempotency: undefined, countsRequest: true } as const

  /** Admits a caller, then restricts the key, as if the caller were remembered from before. */
  async function openStale(restrictions: Partial<KeyRestrictions>) {
    const { id, apiKey, digest } = await stores.register({ credits: 5, rate: { requests: 100, periodSeconds: day } })
    const answer = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert(answer.outcome === 'admitted')
    const [key] = await stores.keys.listKeys(id)
    const all = { allow: null, kinds: null, networks: null }
    await stores.keys.restrictKey(key?.id ?? '', { ...all, ...restrictions })
    return { id, apiKey, caller: answer.caller }
  }

  const scanUrlNow = (...args: Parameters<ReturnType<typeof makeScanning>['scanUrlNow']>) =>
    makeScanning({
      scans: stores.scans,
      gate: stores.gate,
      repeats: { findRepeat: unused, deleteIdempotencyKeys: unused },
      fullLoad: Infinity,
      scanner: {
        scanContent: unused,
        scanUrl: async () => ({
          status: 'clean',
          signals: [],
          metadata: null,
          contentLength: 1,
          contentType: 'text/plain',
        }),
      },
      describe: unused,
      resultWaiters: makeResultWaiters(),
      clock,
      region: 'test',
      reportFailure: unused,
      observeVerdict() {},
    }).scanUrlNow(...args)
  const submitUrl = (...args: Parameters<ReturnType<typeof makeSubmitting>['submitUrl']>) =>
    makeSubmitting({
      gate: stores.gate,
      describe: unused,
      contents: { newWriter: unused, toStoreId: unused, storeIds: [], open: unused, remove: unused, listKeys: unused },
      kinds: ['malware'],
      clock,
      region: 'test',
      degradation: { findRefusal: () => undefined },
      testWebhooks: { maxPerDay: 0, take: unused },
      onQueued() {},
    }).submitUrl(...args)

  const uses = {
    scan: (caller: Parameters<typeof scanUrlNow>[0]) =>
      scanUrlNow(caller, 'https://a.test/', request, new AbortController().signal),
    submit: (caller: Parameters<typeof scanUrlNow>[0]) =>
      submitUrl(caller, 'https://a.test/', { ...request, callbackUrl: null }),
  }

  for (const [action, use] of Object.entries(uses)) {
    const others: Record<string, Partial<KeyRestrictions>> = {
      'another action': { allow: ['read'] },
      'another kind': { kinds: ['nsfw_image'] },
      'another network': { networks: ['192.0.3.0/24'] },
    }
    for (const [name, restrictions] of Object.entries(others)) {
      test(`${action}: to ${name}: is refused, counted once and not charged`, async () => {
        const { id, caller } = await openStale(restrictions)
        const { refused, caller: latest } = await use(caller)
        assert.equal(refused?.refusal.kind, 'key-restricted')
        assert.equal(latest?.requestsRemaining, 98)
        assert.deepEqual(await stores.getBalance(id), { remaining: 5, ledger: 5, debits: 0, scans: 0 })
      })
    }

    test(`${action}: to what it does anyway: is admitted, counted once and charged once`, async () => {
      const networks = ['192.0.2.0/24']
      const { id, caller } = await openStale({ allow: ['scan', 'submit'], kinds: ['malware'], networks })
      const { refused, caller: latest } = await use(caller)
      assert.equal(refused, undefined)
      assert.equal(latest?.requestsRemaining, 98)
      assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    })
  }

  test('is not found among the recent callers for what the key may not do', async () => {
    const { apiKey, caller } = await openStale({})
    const recentCallers = makeRecentCallers()
    const reserve = { ...caller, requestsRemaining: 1000, creditRemaining: 1000, restrictions: '{"allow":["scan"]}' }
    recentCallers.note(caller.keyDigest, reserve)
    const admission = makeAdmission({ gate: stores.gate, creditGate: 'all', recentCallers })
    assert.equal(admission.findRecentCaller([apiKey], { action: 'scan', kind: 'malware', address }), reserve)
    assert.equal(admission.findRecentCaller([apiKey], { action: 'submit', kind: 'malware', address }), undefined)
  })
})
