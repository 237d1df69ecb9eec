import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { eicar } from '../acceptance/support/archives.ts'
import { makeCaller, newNoise } from '../acceptance/support/submitting.ts'
import { toText } from './counts.ts'
import { toP99 } from './health.ts'

type Balances = { url: string; operate(...args: string[]): Promise<unknown> }

/** Clients of an account of their own that send synchronous scans of clean and infected content in turns. */
export async function startScans({ url, operate }: Balances) {
  const account = (await operate(
    'accounts',
    'create',
    '--name',
    'scans',
    '--rate',
    '1000000/1m',
    '--plan',
    'unlimited',
  )) as {
    id: string
    api_key: string
  }
  const caller = makeCaller(url, account.api_key)
  const answers = new Map<string, number>()
  const times: number[] = []
  const answerTimes: number[] = []
  let answered = 0
  let unknown = 0
  let isOver = false
  const running = Promise.all(Array.from({ length: 3 }, (_, n) => scanRepeatedly(n)))
  // `end` reports a failure.
  running.catch(() => {})

  async function scanRepeatedly(n: number) {
    for (let i = 0; !isOver; i++) {
      const isBad = (i + n) % 2 === 0
      const bytes = i % 5 === 0 ? 1_500_000 : 2000
      // Every content is new, because the verdict cache would answer a repeated one.
      const content = isBad ? Buffer.concat([eicar, Buffer.from('\n'.repeat(i % 50))]) : newNoise(bytes)
      const startedAt = performance.now()
      const answer = await caller.sendFile('malware', 'scan', content).catch(() => undefined)
      times.push(performance.now() - startedAt)
      recordAnswer(answer?.status, answer?.text ?? '', answer?.headers['retry-after'], isBad)
      await pause(answer?.status === 201 ? 20 : 100)
    }
  }

  function recordAnswer(status: number | undefined, text: string, retryAfter: unknown, isBad: boolean) {
    const kind = /"type":"[^"]*\/problems\/([\w-]+)"/.exec(text)?.[1]
    const what = kind === undefined ? String(status ?? 'none') : `${status} ${kind}`
    answers.set(what, (answers.get(what) ?? 0) + 1)
    if (status === 201) {
      answered++
      answerTimes.push(Date.now())
      if (isBad) assert(!text.includes('"status":"clean"'), `a false clean: ${text}`)
    } else if (status === 503) assert.match(String(retryAfter), /^[1-9]\d*$/, 'a 503 has Retry-After')
    // A scan without a response, or with an unknown outcome, may be charged.
    else if (status === undefined || kind === 'outcome-unknown') unknown++
    else assert.equal(status, 500, text)
  }

  return {
    /** Number of scans that got a verdict. */
    count: () => answered,
    /** Times at which scans got a verdict, by the clock of this machine. */
    listTimes: () => answerTimes,
    async end() {
      isOver = true
      await running
    },
    /** Checks that each verdict was charged once, and otherwise only scans with an unknown outcome. */
    async check(): Promise<string> {
      const ledger = (await operate('credits', 'ledger', '--account', account.id, '--limit', '100000')) as {
        kind: string
        scan_id: string
      }[]
      const debits = ledger.filter(({ kind }) => kind === 'debit')
      assert.equal(new Set(debits.map((row) => row.scan_id)).size, debits.length, 'no scan is charged twice')
      const spent = await caller.readSpent()
      assert.equal(spent, debits.length, 'the ledger is the balance')
      const about = `${debits.length} charged, ${answered} answered, ${unknown} unknown`
      assert(debits.length >= answered && debits.length <= answered + unknown, about)
      return `${toText(answers)} (${about}; longest ${Math.round(Math.max(...times))} ms, p99 ${toP99(times)} ms)`
    },
  }
}
