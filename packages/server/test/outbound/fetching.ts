import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import type { FetchRequest, FetchResult } from '../../src/domain/ports/content-store.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeContentFetcher } from '../../src/outbound/content-fetcher.ts'
import { makeResolveName } from '../../src/outbound/dial.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { dialled, openCountedContents } from './origins.ts'

/** 127.0.0.2 stands for the public internet. 127.0.0.1 and ::1 stay forbidden, as for everybody. */
const world = '127.0.0.2/32'

/** Knows what needs no name server, and finds none. */
const resolveAlone = makeResolveName({ servers: ['127.0.0.1:1'] })

/** For tests in which a time runs out. */
export const shortLimits = { connectMs: 300, resolveMs: 300, firstByteMs: 300, idleMs: 300 }

/** For all others: a busy machine must not make them fail. */
const longLimits = { connectMs: 10_000, resolveMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 }

const maxBytes = 1_000_000

export type Fetching = {
  allowed?: string[]
  /** What a name resolves to, asked each time. */
  names?: Record<string, () => string[]>
  proxy?: URL
  limits?: Partial<typeof shortLimits>
}

/** Fetches, and makes sure each time that nothing stays open: no connection and no writer. */
export function newFetching(t: TestContext, { allowed = [world], names, proxy, limits = {} }: Fetching = {}) {
  const policy = makeAddressPolicy(allowed)
  const { contents, countOpen, countWritten } = openCountedContents(t)
  const resolve = names === undefined ? resolveAlone : async (name: string) => names[name]?.() ?? []
  const agent = makeGuardedAgent({ policy, proxy, resolve, ...longLimits, ...limits })
  const fetcher = makeContentFetcher({ agent, policy, ...longLimits, ...limits })

  async function fetch(url: string, request: Partial<FetchRequest> = {}): Promise<FetchResult> {
    const before = dialled.length
    const written = countWritten()
    const signal = new AbortController().signal
    try {
      return await fetcher.fetchContent(url, { maxBytes, totalMs: 20_000, signal, contents, ...request })
    } finally {
      await waitUntil('every connection is closed', () => dialled.slice(before).every((socket) => socket.destroyed))
      assert.equal(countOpen(), 0, 'every writer is finished or aborted')
      assert.ok(countWritten() - written <= (request.maxBytes ?? maxBytes), 'nothing beyond the limit is stored')
    }
  }

  return { fetch, agent, fetcher }
}

export function getContent(outcome: FetchResult) {
  if ('failure' in outcome) throw new Error(`${outcome.failure}: ${outcome.reason}`)
  return outcome.content
}

export function assertFailed(outcome: FetchResult, failure: string, reason: RegExp) {
  assert.ok('failure' in outcome, 'it did not fail')
  assert.equal(outcome.failure, failure)
  assert.match(outcome.reason, reason)
  assert.match(outcome.reason, /^The .*\.$/, 'a sentence')
}
