import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { eicar, eicarMember, newTar } from './archives.ts'
import type { Random } from './chaos-random.ts'
import type { Answer } from './http.ts'
import { makeCaller, toId } from './submitting.ts'

/** What a client wants to have scanned. Its name is the number of the order, also in results and callbacks. */
export type Order = {
  name: string
  isVirus: boolean
  isUrl: boolean
  content: Buffer
  callbackPath: string | undefined
  idempotencyKey: string | undefined
  /** Requests that were sent for it, answered or not. */
  tries: number
  /** Once it was acknowledged. */
  id: string | undefined
}

type Deps = {
  url: string
  /** Of other nodes of the same installation: each request goes to one of them all. */
  moreUrls?: string[]
  apiKey: string
  /** Where contents are fetched from, by the name of the order. */
  originUrl: string
  receiverUrl: string
  /** Stands in every page of every content. */
  marker: string
  random: Random
  clients: number
  /** Its content is to be had from the origin from now on. */
  publish(order: Order): void
}

/** Clients that submit one thing after the other, whatever happens to the service, until they are told to end. */
export function startLoad(deps: Deps) {
  const { random } = deps
  const callers = [deps.url, ...(deps.moreUrls ?? [])].map((url) => makeCaller(url, deps.apiKey))
  const pickCaller = () => callers[random.between(0, callers.length - 1)] ?? makeCaller(deps.url, deps.apiKey)
  const orders: Order[] = []
  /** How often each answer came that was no acknowledgement; `none` without an answer. */
  const refusals = new Map<string, number>()
  let isOver = false
  let isAbandoned = false
  const running = Promise.all(Array.from({ length: deps.clients }, runClient))
  running.catch(() => {})

  async function runClient() {
    while (!isOver) {
      const order = newOrder(deps, orders.length)
      orders.push(order)
      deps.publish(order)
      do await submit(order)
      while (order.id === undefined && order.idempotencyKey !== undefined && !isAbandoned)
      if (order.id !== undefined && random.happens(0.3)) await look(order.id)
      await pause(random.between(20, 200))
    }
  }

  /** One request; an order with an Idempotency-Key may have several. */
  async function submit(order: Order) {
    order.tries++
    const fields = {
      file_name: order.name,
      ...(order.callbackPath && { callback_url: `${deps.receiverUrl}${order.callbackPath}` }),
    }
    const more: Record<string, string> = order.idempotencyKey ? { 'idempotency-key': order.idempotencyKey } : {}
    const caller = pickCaller()
    const answer = await inTime(
      order.isUrl
        ? caller.sendUrl('malware', 'submit', `${deps.originUrl}/${order.name}`, fields, more)
        : caller.sendFile('malware', 'submit', order.content, fields, more),
    )
    if (answer?.status !== 202) return refuse(answer)
    const id = toId(answer)
    assert.equal(order.id ?? id, id, 'one Idempotency-Key, one job')
    order.id = id
  }

  /** What was acknowledged is there at once, or nobody can say at the moment. */
  async function look(id: string) {
    const answer = await inTime(pickCaller().fetchResult('malware', id))
    if (answer?.status !== 200) await refuse(answer)
  }

  async function refuse(answer: Answer | undefined) {
    const what = String(answer?.status ?? 'none')
    refusals.set(what, (refusals.get(what) ?? 0) + 1)
    assert(['none', '500', '503'].includes(what), `${what} ${answer?.text}`)
    await pause(100)
  }

  return {
    orders,
    refusals,
    submit,
    /** Also fails when a client got an answer that nobody should get. */
    async end() {
      isOver = true
      await running
    },
    /** Ends by itself only when something is wrong. */
    running,
    /** Nobody is interested any more. */
    async abandon() {
      isOver = true
      isAbandoned = true
      await running.catch(() => {})
    },
  }
}

export type Load = ReturnType<typeof startLoad>

/** Undefined without an answer. One that does not come at all is a failure of its own. */
async function inTime(answer: Promise<Answer>): Promise<Answer | undefined> {
  const late = new AbortController()
  const tooLate = pause(90_000, 'late' as const, { signal: late.signal }).catch(() => 'late' as const)
  const first = await Promise.race([answer.catch(() => undefined), tooLate])
  late.abort()
  assert.notEqual(first, 'late', 'a request was not answered in 90 seconds')
  return first as Answer | undefined
}

function newOrder({ random, marker }: Deps, n: number): Order {
  const isVirus = random.happens(0.4)
  const bytes = random.happens(0.6) ? random.between(1000, 10_000) : random.between(10_000, 2_000_000)
  const filler = toMarked(`${marker} ${n}`, bytes)
  const content = isVirus ? newTar([{ name: 'a.txt', data: filler }, eicarMember]) : filler
  const name = `order-${n}`
  return {
    ...{ name, isVirus, isUrl: random.happens(0.25) },
    content: isVirus && random.happens(0.3) ? eicar : content,
    callbackPath: random.happens(0.9) ? `/${name}` : undefined,
    idempotencyKey: random.happens(0.4) ? `key-${n}` : undefined,
    ...{ tries: 0, id: undefined },
  }
}

/** So that any part of it that is written somewhere is known. */
const toMarked = (mark: string, bytes: number): Buffer => Buffer.alloc(bytes, mark.padEnd(200, ' x'))
