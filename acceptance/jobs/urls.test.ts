import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eicar, eicarSignal } from '../support/archives.ts'
import { images } from '../support/forms.ts'
import { openBefore } from '../support/open-before.ts'
import { openOrigin } from '../support/origin.ts'
import { assertProblem } from '../support/problems.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Kind, makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
const lacking = await lacksClamAv(service.url)
const text = 'a text that is worth a scan'

describe('content that is fetched by its URL', { skip: lacking || alreadyTested }, () => {
  const held: ServerResponse[] = []
  const announce = (response: ServerResponse, bytes: number) => response.writeHead(200, { 'content-length': bytes })
  /** Sends until nobody listens any more. */
  const flood = (response: ServerResponse) => {
    const piece = Buffer.alloc(2 ** 20, 'flood ')
    const more = () => {
      while (!response.destroyed && response.write(piece)) {}
    }
    response.on('drain', more)
    more()
  }
  const origin = openBefore(() =>
    openOrigin({
      '/text': text,
      '/virus': eicar,
      '/picture': images['one.png'],
      '/moved': (_request, response) => void response.writeHead(302, { location: '/text' }).end(),
      '/held': (_request, response) => void held.push(response),
      '/empty': '',
      '/announced': (_request, response) => void announce(response, 300 * 2 ** 20).write('x'),
      '/flood': (_request, response) => flood(response),
      '/short': (_request, response) => {
        announce(response, 1000).write('x', () => response.destroy())
      },
      '/packed': (_request, response) =>
        void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(10_000_000))),
      '/failing': (_request, response) => void response.writeHead(500).end('text'),
      '/partial': (_request, response) => void response.writeHead(206).end('text'),
      '/loop': (request, response) =>
        void response.writeHead(302, { location: `/loop?${Number(request.url?.split('?')[1] ?? 0) + 1}` }).end(),
      '/elsewhere': (_request, response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    }),
  )
  const caller = openBefore(async () => makeCaller(service.url, (await service.createAccount()).api_key))

  /** The result of it, waited for in either way. */
  async function scan(kind: Kind, how: 'scan' | 'submit', url: string, fields = {}) {
    const answer = await caller.sendUrl(kind, how, url, fields)
    return how === 'scan' ? toResult(answer, 201) : caller.complete(kind, toId(answer))
  }

  for (const how of ['scan', 'submit'] as const) {
    test(`${how}: gets the verdict that an upload would, for one credit`, async () => {
      const before = await caller.readSpent()
      const clean = await scan('malware', how, `${origin.url}/text`, { file_name: 'a.txt' })
      assert.deepEqual([clean.status, clean.signals, clean.content_name], ['clean', [], 'a.txt'])
      assert.deepEqual([clean.content_length, clean.content_type], [text.length, 'text/plain; charset=us-ascii'])
      assert.equal(clean.metadata?.hash_sha256, hash('sha256', text))
      const threat = await scan('malware', how, `${origin.url}/virus`)
      assert.deepEqual([threat.status, threat.signals], ['threat', [eicarSignal]])
      assert(!('content_name' in threat), 'nobody gave it a name')
      const picture = await scan('nsfw/images', how, `${origin.url}/picture`)
      assert.deepEqual([picture.status, picture.content_type], ['clean', 'image/png'])
      assert.equal((await scan('malware', how, `${origin.url}/moved`)).metadata?.hash_sha256, hash('sha256', text))
      assert.equal((await caller.readSpent()) - before, 4)
    })

    const failures: [kind: Kind, path: string, signal: string][] = [
      ['malware', '/empty', 'EmptyContent'],
      ['nsfw/images', '/text', 'UnsupportedImage'],
      ['nsfw/images', '/empty', 'EmptyContent'],
      ['nsfw/images', '/flood', 'TooLarge'],
      ['malware', '/announced', 'TooLarge'],
      ...['/missing', '/short', '/packed', '/failing', '/partial', '/loop', '/elsewhere'].map(
        (path): [Kind, string, string] => ['malware', path, 'DownloadFailed'],
      ),
    ]
    test(`${how}: what goes wrong on the other side is told, and costs its credit`, async () => {
      const before = await caller.readSpent()
      const results = await Promise.all(failures.map(([kind, path]) => scan(kind, how, `${origin.url}${path}`)))
      for (const [i, [, path, signal]] of failures.entries()) {
        assert.deepEqual([results[i]?.status, results[i]?.signals], ['error', [`Error:${signal}`]], path)
      }
      assert.equal((await caller.readSpent()) - before, failures.length)
    })
  }

  test('is pending until it has come, and whoever waits is told at once', async () => {
    const id = toId(await caller.sendUrl('malware', 'submit', `${origin.url}/held`, { file_name: 'slow.txt' }))
    await waitUntil('the download to begin', () => held.length > 0)
    const answer = await caller.fetchResult('malware', id)
    const { created_at, ...pending } = toResult(answer, 200)
    assert.deepEqual(pending, {
      id,
      scan_type: 'malware',
      status: 'pending',
      content_length: 0,
      content_type: 'application/octet-stream',
      content_name: 'slow.txt',
      signals: null,
      metadata: null,
      completed_at: null,
    })
    assert.match(String(answer.headers['cache-control']), /no-store/)
    assert.equal(answer.headers.etag, undefined)
    assert.equal(toResult(await caller.fetchResult('malware', id, '?wait=1'), 200).status, 'pending')

    const told: string[] = []
    const waiting = [1, 2, 3].map(async () => {
      told.push(toResult(await caller.fetchResult('malware', id, '?wait=30'), 200).status)
    })
    await caller.fetchResult('malware', id)
    assert.deepEqual(told, [], 'no answer before there is a result')
    for (const response of held) response.end(text)
    await waitUntil('the answers, long before the 30 s are over', () => told.length === 3)
    await Promise.all(waiting)
    assert.deepEqual(told, ['clean', 'clean', 'clean'])
  })

  test('is fetched only from hosts that the account may use, at redirects too', async () => {
    const create = async (hosts: string) =>
      makeCaller(service.url, (await service.createAccount('--download-hosts', hosts)).api_key)
    const other = await openOrigin(
      { '/': (_request, response) => void response.writeHead(302, { location: `${origin.url}/text` }).end() },
      { host: '127.9.9.10' },
    )
    try {
      const [may, mayNot] = await Promise.all([create('127.9.9.10,127.9.9.9'), create('example.com,127.9.9.10')])
      assert.equal(toResult(await may.sendUrl('malware', 'scan', `${other.url}/`), 201).status, 'clean')
      const before = origin.asked.length
      for (const url of [`${other.url}/`, `${origin.url}/text`]) {
        const { status, signals } = toResult(await mayNot.sendUrl('malware', 'scan', url), 201)
        assert.deepEqual([status, signals], ['error', ['Error:DownloadFailed']])
        const { signals: later } = await mayNot.complete(
          'malware',
          toId(await mayNot.sendUrl('malware', 'submit', url)),
        )
        assert.deepEqual(later, ['Error:DownloadFailed'])
      }
      assert.equal(origin.asked.length, before)
    } finally {
      await other.close()
    }
  })

  for (const kind of ['malware', 'nsfw/images'] as const) {
    for (const how of ['scan', 'submit'] as const) {
      test(`${kind}/${how}/url: twenty at once with one Idempotency-Key are one`, async () => {
        const before = await caller.readSpent()
        const key = { 'idempotency-key': randomUUID() }
        const url = `${origin.url}/picture`
        const send = () => caller.sendUrl(kind, how, url, {}, key)
        const answers = await Promise.all(Array.from({ length: 20 }, send))
        answers.push(await send())
        assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [how === 'scan' ? 201 : 202])
        for (const answer of answers) assert.deepEqual(JSON.parse(answer.text), JSON.parse(answers[0]?.text ?? ''))
        assert.equal((await caller.readSpent()) - before, 1)
        const invalid = { status: 422, kind: 'validation' as const, errors: ['Idempotency-Key'] }
        await assertProblem(await caller.sendUrl(kind, how, `${url}?other`, {}, key), invalid)
        const tooLong = { 'idempotency-key': 'k'.repeat(256) }
        await assertProblem(await caller.sendUrl(kind, how, url, {}, tooLong), invalid)
        assert.equal((await caller.readSpent()) - before, 1)
      })
    }
  }
})
