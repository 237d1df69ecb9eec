import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

type Account = { api_key: string }
type Deps = { urls: readonly string[]; operate(...args: string[]): Promise<unknown> }

const allowed = 400

/** An account that exceeds its rate limit on all nodes at once. */
export async function startRateLimited({ urls, operate }: Deps) {
  const options = ['--name', 'limited', '--rate', `${allowed}/1d`, '--plan', 'unlimited']
  const { api_key: key } = (await operate('accounts', 'create', ...options)) as Account
  let [granted, refused, unknown] = [0, 0, 0]
  let isOver = false
  const running = Promise.all(urls.flatMap((url) => [pingRepeatedly(url), pingRepeatedly(url)]))
  running.catch(() => {})

  async function ping(url: string) {
    const answer = await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': key } }).catch(() => undefined)
    await answer?.body?.cancel().catch(() => {})
    if (answer === undefined || answer.status >= 500) unknown++
    else if (answer.status === 200) granted++
    else {
      assert.equal(answer.status, 429)
      refused++
    }
  }

  async function pingRepeatedly(url: string) {
    while (!isOver) {
      await ping(url)
      await pause(400)
    }
  }

  return {
    async end() {
      isOver = true
      await running
    },
    /** Checks that exactly the allowed requests were granted; unanswered ones may have been granted as well. */
    async check(): Promise<string> {
      while (refused === 0) await Promise.all(urls.map(ping))
      await Promise.all(urls.flatMap((url) => Array.from({ length: 20 }, () => ping(url))))
      const about = `${granted} granted of ${allowed}, ${refused} refused, ${unknown} unanswered`
      assert(granted <= allowed && granted + unknown >= allowed, about)
      return `rate limit ${about}`
    },
  }
}
