import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { eicar, eicarMember, newTar } from './archives.ts'
import type { Random } from './chaos-random.ts'
import type { Answer } from './http.ts'
import { type Kind, makeCaller, toId } from './submitting.ts'

/** Content that a client submits. Its name carries the number of the order into results and callbacks. */
export type Order = {
  name: string
  kind: Kind
  isVirus: boolean
  isUrl: boolean
  content: Buffer
  callbackUrl: string | undefined
  idempotencyKey: string | undefined
  /** Number of requests sent for the order, answered or not. */
  tries: number
  /** Id of the scan, once the service acknowledged the order. */
  id: string | undefined
}

type Deps = {
  url: string
  /** Addresses of other nodes of the installation; each request goes to a random one. */
  moreUrls?: string[]
  apiKey: string
  /** Origin that serves the content of an order under its name. */
  originUrl: string
  /** Receivers of webhooks, which the orders use in turn. */
  receiverUrls: string[]
  /** Text contained in every page of every content. */
  marker: string
  random: Random
  clients: number
  /** Milliseconds between two orders of a client. */
  pauseMs?: { from: number; to: number }
  /** Bytes of the larger contents. */
  maxBytes?: number
  /** A JPEG file: with it, one of seven orders is a picture. */
  picture?: Buffer
  /** Makes the origin serve the content of the order. */
  publish(order: Order): void
}

/** Clients that submit one order after the other, whatever happens to the service, until `end` is called. */
export function startLoad(deps: Deps) {
  const { random, pauseMs = { from: 20, to: 200 } } = deps
  const callers = [deps.url, ...(deps.moreUrls ?? [])].map((url) => makeCaller(url, deps.apiKey))
  const pickCaller = () => callers[random.between(0, callers.length - 1)] ?? makeCaller(deps.url, deps.apiKey)
  const orders: Order[] = []
  /** Number of responses by status that were no acknowledgement; `none` counts requests without a response. */
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
      if (order.id !== undefined && random.happens(0.3)) await look(order, order.id)
      await pause(random.between(pauseMs.from, pauseMs.to))
    }
  }

  /** Sends one request; an order with an Idempotency-Key may need several. */
  async function submit(order: Order) {
    order.tries++
    const fields = {
      file_name: order.name,
      ...(order.callbackUrl && { callback_url: order.callbackUrl }),
    }
    const more: Record<string, string> = order.idempotencyKey ? { 'idempotency-key': order.idempotencyKey } : {}
    const caller = pickCaller()
    const answer = await inTime(
      order.isUrl
        ? caller.sendUrl(order.kind, 'submit', `${deps.originUrl}/${order.name}`, fields, more)
        : caller.sendFile(order.kind, 'submit', order.content, fields, more),
    )
    if (answer?.status !== 202) return refuse(answer)
    const id = toId(answer)
    assert.equal(order.id ?? id, id, 'one Idempotency-Key, one job')
    order.id = id
  }

  /** Reads the result of an acknowledged order, which must exist unless the service is unavailable. */
  async function look({ kind }: Order, id: string) {
    const answer = await inTime(pickCaller().fetchResult(kind, id))
    if (answer?.status !== 200) await refuse(answer)
  }

  async function refuse(answer: Answer | undefined) {
    const what = String(answer?.status ?? 'none')
    refusals.set(what, (refusals.get(what) ?? 0) + 1)
    assert(['none', '500', '503'].includes(what), `${what} ${answer?.text}`)
    // A client that tried every 100 ms would spend more on refused connections than the service on its work.
    await pause(random.between(200, 800))
  }

  return {
    orders,
    refusals,
    submit,
    /** Stops the clients. Rejects when a client received a response that must not occur. */
    async end() {
      isOver = true
      await running
    },
    /** Rejects when a client received a response that must not occur. */
    running,
    /** Stops the clients without regard to failures. */
    async abandon() {
      isOver = true
      isAbandoned = true
      await running.catch(() => {})
    },
  }
}

export type Load = ReturnType<typeof startLoad>

/** Returns undefined when the connection broke. A request that is neither answered nor broken fails the test. */
async function inTime(answer: Promise<Answer>): Promise<Answer | undefined> {
  const late = new AbortController()
  const tooLate = pause(90_000, 'late' as const, { signal: late.signal }).catch(() => 'late' as const)
  const first = await Promise.race([answer.catch(() => undefined), tooLate])
  late.abort()
  assert.notEqual(first, 'late', 'a request was not answered in 90 seconds')
  return first as Answer | undefined
}

function newOrder({ random, marker, picture, receiverUrls, maxBytes = 2_000_000 }: Deps, n: number): Order {
  const isPicture = picture !== undefined && n % 7 === 0
  const isVirus = !isPicture && random.happens(0.4)
  const bytes = random.happens(0.6) ? random.between(1000, 10_000) : random.between(10_000, maxBytes)
  const mark = `${marker} ${n}`
  const filler = isPicture ? toMarkedPicture(picture, mark) : toMarked(mark, bytes)
  const content = isVirus ? newTar([{ name: 'a.txt', data: filler }, eicarMember]) : filler
  const name = `order-${n}`
  return {
    name,
    kind: isPicture ? 'nsfw/images' : 'malware',
    isVirus,
    isUrl: random.happens(0.25),
    content: isVirus && random.happens(0.3) ? eicar : content,
    callbackUrl: random.happens(0.9) ? `${receiverUrls[n % receiverUrls.length]}/${name}` : undefined,
    idempotencyKey: random.happens(0.4) ? `key-${n}` : undefined,
    tries: 0,
    id: undefined,
  }
}

/** Repeats the mark, so that any part of the content that leaks can be recognised. */
const toMarked = (mark: string, bytes: number): Buffer => Buffer.alloc(bytes, mark.padEnd(200, ' x'))

/** Adds the mark as a comment of the JPEG, so that no picture is one that the service remembers. */
function toMarkedPicture(picture: Buffer, mark: string): Buffer {
  const text = Buffer.from(mark)
  const head = Buffer.from([0xff, 0xd8, 0xff, 0xfe, 0, text.length + 2])
  return Buffer.concat([head, text, picture.subarray(2)])
}
