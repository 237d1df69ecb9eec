import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { ScanResult } from '@assay/contract'
import type { Answer } from '../../acceptance/support/http.ts'
import { makeCaller, toId } from '../../acceptance/support/submitting.ts'
import { toText } from '../counts.ts'

type Account = { id: string; api_key: string; webhook_secret: string }
type Deps = {
  urls: readonly string[]
  receiverUrl: string
  operate(...args: string[]): Promise<unknown>
}

/** A neutral picture that the models classify as a threat. */
const picture = readFileSync(new URL('../../acceptance/support/pictures/colours.jpg', import.meta.url))
const signal = 'Classification:pornography'

/** Clients of an account of their own that scan pictures, synchronously and in the background, on all nodes. */
export async function startPictures({ urls, receiverUrl, operate }: Deps) {
  const options = ['--name', 'pictures', '--rate', '1000000/1m', '--plan', 'unlimited']
  const account = (await operate('accounts', 'create', ...options)) as Account
  const answers = new Map<string, number>()
  const ids: string[] = []
  let [count, answered, unknown] = [0, 0, 0]
  let isOver = false
  const running = Promise.all(urls.map(scanRepeatedly))
  running.catch(() => {})

  async function scanRepeatedly(url: string) {
    const caller = makeCaller(url, account.api_key)
    for (let i = 0; !isOver; i++) {
      // Every other picture is too large to be stored in a database row.
      const content = stamp(picture, i % 2 === 0 ? 100 : 200_000)
      if (i % 3 === 0) {
        const fields = { file_name: 'at-once' }
        recordScan(await caller.sendFile('nsfw/images', 'scan', content, fields).catch(() => undefined))
      } else {
        const name = `picture-${count++}`
        const fields = { file_name: name, callback_url: `${receiverUrl}/${name}` }
        recordSubmit(await caller.sendFile('nsfw/images', 'submit', content, fields).catch(() => undefined))
      }
      await pause(300)
    }
  }

  function recordScan(answer: Answer | undefined) {
    recordAnswer('scan', answer)
    if (answer?.status !== 201) return
    answered++
    checkVerdict(JSON.parse(answer.text))
  }

  function recordSubmit(answer: Answer | undefined) {
    recordAnswer('submit', answer)
    if (answer?.status === 202) ids.push(toId(answer))
  }

  function recordAnswer(how: string, answer: Answer | undefined) {
    const what = `${how} ${answer?.status ?? 'none'}`
    answers.set(what, (answers.get(what) ?? 0) + 1)
    if (answer === undefined || answer.text.includes('outcome-unknown')) unknown++
    else assert([201, 202, 500, 503].includes(answer.status), answer.text)
  }

  return {
    secret: account.webhook_secret,
    async end() {
      isOver = true
      await running
    },
    /** Tells results of background jobs from those of synchronous scans, which have no callback. */
    isSubmitted: ({ content_name }: ScanResult) => String(content_name).startsWith('picture-'),
    /** Checks that every accepted picture is complete and charged once. */
    async check(): Promise<{ text: string; results: Map<string, ScanResult> }> {
      const caller = makeCaller(urls[0] ?? '', account.api_key)
      const rows = await operate('credits', 'ledger', '--account', account.id, '--limit', '100000')
      const ledger = rows as { kind: string; scan_id: string }[]
      const listOf = (kind: string) => ledger.filter((row) => row.kind === kind).map((row) => row.scan_id)
      const debits = new Set(listOf('debit'))
      assert.equal(debits.size, listOf('debit').length, 'no picture is charged twice')
      for (const id of ids) assert(debits.has(id), `${id} was acknowledged and not charged`)
      const results = new Map<string, ScanResult>()
      let failed = 0
      for (const id of debits) {
        const result = await caller.complete('nsfw/images', id)
        if (checkVerdict(result) === 'failed') failed++
        results.set(id, result)
      }
      assert.equal(await caller.readSpent(), debits.size - listOf('refund').length, 'the ledger is the balance')
      const about = `${debits.size} charged, ${ids.length} accepted, ${answered} answered, ${unknown} unknown`
      const certain = ids.length + answered
      assert(debits.size >= certain && debits.size <= certain + unknown, about)
      return { text: `pictures ${toText(answers)} (${about}; ${failed} failed)`, results }
    },
  }
}

/** Checks the result of the only picture, which must never be clean. */
function checkVerdict(result: ScanResult): 'found' | 'failed' {
  const about = JSON.stringify(result)
  if (result.status === 'error') {
    assert.deepEqual(result.signals, ['Error:EngineFailed'], about)
    return 'failed'
  }
  assert.deepEqual([result.status, result.signals], ['threat', [signal]], about)
  return 'found'
}

/** Adds a comment of this many bytes, so that no two pictures are the same. */
function stamp(jpeg: Buffer, bytes: number): Buffer {
  const comments: Buffer[] = []
  for (let left = bytes; left > 0; left -= 60_000) {
    const text = randomBytes(Math.min(left, 60_000))
    const head = Buffer.from([0xff, 0xfe, 0, 0])
    head.writeUInt16BE(text.length + 2, 2)
    comments.push(head, text)
  }
  return Buffer.concat([jpeg.subarray(0, 2), ...comments, jpeg.subarray(2)])
}
