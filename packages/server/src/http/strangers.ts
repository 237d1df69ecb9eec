import { toNetwork } from '../domain/console/throttle.ts'
import { newCache } from '../domain/new-cache.ts'
import { Problem } from '../domain/problem.ts'

/** After a quiet time, a network may make as many requests at once as in this many seconds. */
const burstSeconds = 2
/** The longest wait for a turn; more requests of a network are refused at once. */
const maxWaitMs = 5000
const maxNetworks = 20_000

/**
 * Limits the requests of strangers: those without a valid key. A network that makes too many gets its answers more
 * slowly, which holds back every client that waits for an answer before it sends the next request. Requests with a
 * valid key are never held back, whoever else uses their address.
 */
export function makeStrangerLimit({ perSecond, now = () => performance.now() }: Options) {
  /** Until when the requests of a network so far would take at the permitted rate. */
  const usedUntil = newCache<number>(maxNetworks)

  /** Returns the milliseconds until the turn of a request that counts as `weight` requests; undefined if it is too far. */
  function take(address: string, weight: number): number | undefined {
    const network = toNetwork(address)
    const at = now()
    const turnAt = Math.max(usedUntil.get(network) ?? Number.NEGATIVE_INFINITY, at - burstSeconds * 1000)
    const waitMs = Math.max(0, turnAt - at)
    if (waitMs > maxWaitMs) return undefined
    usedUntil.set(network, turnAt + (weight * 1000) / perSecond)
    return waitMs
  }

  return {
    /** Waits for the turn of a request. Throws if the network has too many requests that wait. */
    async waitForTurn(address: string, weight = 1): Promise<void> {
      const waitMs = take(address, weight)
      if (waitMs === undefined) throw newRefusal()
      if (waitMs > 0) await sleep(waitMs)
    },
    /** Answers a request whose key is not valid: throws after its turn if the network has made too many of them. */
    async refuseTooMany(address: string): Promise<void> {
      const waitMs = take(address, 1)
      if (waitMs === 0) return
      if (waitMs !== undefined) await sleep(waitMs)
      throw newRefusal()
    },
  }
}

type Options = {
  /** Requests that a network may make, in the long run. */
  perSecond: number
  now?: () => number
}

export type StrangerLimit = ReturnType<typeof makeStrangerLimit>

/** The limit of requests for operations with a wrong key, or without one. */
export const makeWrongKeyLimit = () => makeStrangerLimit({ perSecond: 200 })

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const newRefusal = () =>
  new Problem({
    kind: 'rate-limited',
    retryAfterSeconds: Math.ceil(maxWaitMs / 1000),
    detail: 'Your network makes too many requests without a valid key.',
  })
