import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, describe, test } from 'node:test'
import { notPublicHosts } from '../support/addresses.ts'
import { openBefore } from '../support/open-before.ts'
import { openCanaries, openOrigin } from '../support/origin.ts'
import { assertProblem } from '../support/problems.ts'
import { alreadyTested } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()

describe('an address that is not public', { skip: alreadyTested }, () => {
  /** Where `/?n` of the origin redirects to. */
  const targets: string[] = []
  const canaries = openBefore(openCanaries)
  const origin = openBefore(() =>
    openOrigin((request, response) => {
      const target = targets[Number(request.url?.split('?')[1])] ?? ''
      // Header values travel as bytes; wide digits are UTF-8.
      response.writeHead(302, { location: Buffer.from(target).toString('latin1') }).end()
    }),
  )
  const account = openBefore(() => service.createAccount())
  const caller = openBefore(async () => makeCaller(service.url, account.api_key))
  after(() => assert.deepEqual(canaries.touched, [], 'not later either'))

  /** Forbidden hosts with the port of the canaries, servers that record every connection. */
  const listUrls = () => notPublicHosts.map((host) => `http://${host}:${canaries.port}/`)
  const refused = (field: string) => ({ status: 422, kind: 'validation' as const, errors: [field] })
  const assertDownloadFailed = (result: { status: string; signals?: string[] | null }, about: string) =>
    assert.deepEqual([result.status, result.signals], ['error', ['Error:DownloadFailed']], about)

  test('has a canary that records a connection', async () => {
    assert.equal(await (await fetch(`http://[::1]:${canaries.port}/`)).text(), 'song')
    assert.deepEqual(canaries.touched.splice(0), ['::1'])
  })

  test('422: as file_url or callback_url, in at least 60 spellings, whatever else is allowed', async () => {
    assert(notPublicHosts.length >= 60)
    for (const url of listUrls()) {
      await assertProblem(await caller.sendUrl('malware', 'scan', url), refused('file_url'), url)
      await assertProblem(await caller.sendUrl('nsfw/images', 'submit', url), refused('file_url'), url)
      const fields = { callback_url: url }
      await assertProblem(await caller.sendFile('malware', 'submit', 'x', fields), refused('callback_url'), url)
    }
    assert.deepEqual(canaries.touched, [])
  })

  test('Error:DownloadFailed: behind a redirect, in the same spellings, and behind other schemes', async () => {
    const others = [
      'file:///etc/passwd',
      'ftp://127.9.9.9/',
      'gopher://127.9.9.9:70/',
      'data:text/plain,x',
      'javascript:1',
      `http://u:p@127.9.9.9:${origin.port}/`,
      'http://127.9.9.9:22/',
      'http://',
      '//',
      `//[::1]:${canaries.port}/`,
      `http://localhost:${canaries.port}/`,
      `https://127.0.0.1:${canaries.port}/`,
      `\\\\127.0.0.1:${canaries.port}\\`,
    ]
    targets.push(...listUrls(), ...others)
    const scan = async (n: number) => {
      const answer = await caller.sendUrl('malware', 'scan', `${origin.url}/?${n}`)
      assertDownloadFailed(toResult(answer, 201), String(targets[n]))
    }
    await Promise.all(targets.map((_target, n) => scan(n)))
    assert.equal(origin.asked.length, targets.length, 'each was asked for once')
    assert.deepEqual(canaries.touched, [])
  })

  test('Error:DownloadFailed: behind a name', async () => {
    const names = ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'localhost.localhost', hostname()]
    for (const name of names) {
      const url = `http://${name}:${canaries.port}/`
      assertDownloadFailed(toResult(await caller.sendUrl('malware', 'scan', url), 201), name)
      const id = toId(await caller.sendUrl('malware', 'submit', url, { callback_url: url }))
      assertDownloadFailed(await caller.complete('malware', id), name)
    }
    // A webhook is sent after its result can be read. Retries are a subject of webhooks.test.ts.
    await waitUntil('an attempt of each webhook', async () => {
      const deliveries = (await service.operate('webhooks', 'deliveries', '--account', account.id)) as Delivery[]
      return deliveries.filter(({ attempts }) => attempts > 0).length === names.length
    })
    assert.deepEqual(canaries.touched, [])
  })

  test('is given in no reason that a caller is told', async () => {
    const { metadata } = toResult(await caller.sendUrl('malware', 'scan', `http://localhost:${canaries.port}/`), 201)
    assert.doesNotMatch(JSON.stringify(metadata), /127|::1|ECONN/)
  })
})

type Delivery = { attempts: number }
