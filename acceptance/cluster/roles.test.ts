import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { lacksTestS3 } from '../../scripts/test-s3.ts'
import { eicar, eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { type Cluster, openCluster } from '../support/cluster.ts'
import { makeAdmin } from '../support/console.ts'
import { sendTo } from '../support/http.ts'
import { type Origin, openOrigin } from '../support/origin.ts'
import { findChildren } from '../support/processes.ts'
import { openReceiver } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv, readReadiness, toVerdict } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, withoutImages } from '../support/start-service.ts'
import { makeCaller, newNoise, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)
/** A neutral picture that the models take for a threat. */
const picture = readFileSync(new URL('../support/pictures/colours.jpg', import.meta.url))
const pictureSignal = 'Classification:pornography'

const adminToken = 'f'.repeat(40)
const settings = { ASSAY_ADMIN_TOKEN: adminToken }

type Caller = ReturnType<typeof makeCaller>

describe('two API nodes and a worker', { skip: lacking || alreadyTested || lacksTestS3() }, () => {
  let cluster: Cluster
  let origin: Origin
  let worker: Service
  let apis: [Service, Service]
  let callers: [Caller, Caller]
  /** Answers of the origin that are held back. */
  const held: ServerResponse[] = []
  const [first, second] = [() => callers[0], () => callers[1]]
  /** Text that the added signatures find. */
  const mark = `found in a cluster ${randomUUID()}`
  const scanMarked = async () => toVerdict(await first().sendFile('malware', 'scan', mark))
  const waitForSignals = (signals: string[]) =>
    waitUntil(`${signals} to be found`, async () => (await scanMarked()).signals.toSorted().join() === signals.join())

  before(async () => {
    cluster = await openCluster()
    origin = await openOrigin({
      '/eicar': eicar,
      '/slow': (_request, response) => void held.push(response),
      '/private': (request, response) => {
        if (request.headers.authorization !== 'Bearer of the cluster') response.statusCode = 401
        response.end(eicar)
      },
    })
    const nodes = await Promise.all(['worker', 'api', 'api'].map((roles) => cluster.start(roles, settings)))
    const [one, two, three] = nodes as [Service, Service, Service]
    worker = one
    apis = [two, three]
    callers = [makeCaller(two.url, cluster.apiKey), makeCaller(three.url, cluster.apiKey)]
    for (const { url } of apis) {
      await waitUntil('the worker to be seen', async () => (await readReadiness(url)).status === 'ready')
    }
  })
  after(async () => {
    await cluster?.close()
    await origin?.close()
  })

  test('content that is larger than a row goes from one node to another through S3', async () => {
    const large = newTar([{ name: 'noise', data: randomBytes(3_000_000) }, eicarMember])
    const { status, signals } = toVerdict(await first().sendFile('malware', 'scan', large))
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    const id = toId(await second().sendFile('malware', 'submit', large))
    assert.equal((await first().complete('malware', id)).status, 'threat')
  })

  test('the API nodes run no engine, and say so', async () => {
    for (const { url, pid } of apis) {
      assert.deepEqual(findChildren(pid, ''), [])
      const { engines, ...health } = await readReadiness(url)
      assert.deepEqual(engines, [])
      assert.deepEqual(
        { ...health, version: '', region: '' },
        {
          status: 'ready',
          reasons: [],
          checks: {
            database: 'ok',
            clock: 'ok',
            'master key': 'ok',
            disk: 'ok',
            workers: 'ok',
            signatures: 'ok',
            'content store': 'ok',
          },
          version: '',
          region: '',
          roles: ['api'],
          workers: 1,
        },
      )
    }
  })

  test('the worker has no API, and says where it is', async () => {
    for (const path of ['/v1/ping', '/openapi.json', '/reference', '/']) {
      const answer = await sendTo(worker.url, { method: 'GET', path, headers: { [headers.apiKey]: cluster.apiKey } })
      assert.equal(answer.status, 404)
      assert.match(JSON.parse(answer.text).detail, /^This node is a worker.* Send the request to a node that serves/)
    }
    assert.equal((await fetch(`${worker.url}/livez`)).status, 200)
    assert.equal((await fetch(`${worker.url}/readyz`)).status, 200)
    assert.equal((await fetch(`http://127.0.0.1:${worker.metricsPort}/metrics`)).status, 200)
  })

  test('find what one node would, whichever way it comes', async () => {
    const before = await first().readSpent()
    const { signals, metadata } = toVerdict(await first().sendFile('malware', 'scan', eicar, { file_name: 'a.com' }))
    assert.deepEqual(signals, [eicarSignal])
    assert.match(metadata.engine_versions ?? '', /ClamAV/)
    assert.deepEqual(toVerdict(await second().sendUrl('malware', 'scan', `${origin.url}/eicar`)).signals, [eicarSignal])
    assert.equal(toVerdict(await second().sendFile('malware', 'scan', 'harmless')).status, 'clean')
    assert.deepEqual(toVerdict(await first().sendFile('nsfw/images', 'scan', picture)).signals, [pictureSignal])
    const missing = toVerdict(await first().sendUrl('malware', 'scan', `${origin.url}/nothing`))
    assert.deepEqual(missing.signals, ['Error:DownloadFailed'])

    // A worker downloads with the credential of the account that asked an API node.
    const admin = makeAdmin(apis[0].url, adminToken)
    const [account] = await admin.ask<{ id: string }[]>(admin.token, 'GET', '/operator/accounts')
    const credential = { host: origin.url, headers: [{ name: 'Authorization', value: 'Bearer of the cluster' }] }
    await admin.ask(admin.token, 'POST', `/operator/accounts/${account?.id}/downloads`, credential)
    const asPrivate = toVerdict(await second().sendUrl('malware', 'scan', `${origin.url}/private`))
    assert.deepEqual(asPrivate.signals, [eicarSignal])

    const id = toId(await first().sendFile('malware', 'submit', eicar))
    assert.deepEqual((await second().complete('malware', id)).signals, [eicarSignal])
    const pictureId = toId(await second().sendFile('nsfw/images', 'submit', picture))
    assert.deepEqual((await first().complete('nsfw/images', pictureId)).signals, [pictureSignal])
    assert.equal((await second().readSpent()) - before, 8)
  })

  test('notify each other of work and of results, so that none of them has to poll', async (t) => {
    const heard = await cluster.listen()
    t.after(heard.close)
    const hears = (message: string) => waitUntil(message, () => heard.messages.some((text) => text.includes(message)))
    toVerdict(await first().sendFile('malware', 'scan', newNoise(1024)))
    await hears('remote-scans')
    await hears('completed:')
    const id = toId(await first().sendFile('malware', 'submit', newNoise(1024)))
    assert.equal((await second().complete('malware', id)).status, 'clean')
    await hears('jobs')
    await hears(id)
    // Each node also checks with messages to itself that notifications reach it, and logs when they do not.
    for (const node of [worker, ...apis]) assert.doesNotMatch(node.log(), /notifications between processes do not work/)
  })

  test('signatures that are added at an API node are in use on the worker', async () => {
    assert.equal((await scanMarked()).status, 'clean')
    const dir = mkdtempSync(join(tmpdir(), 'assay-cluster-'))
    try {
      const contents = {
        'cluster.yar': `rule cluster_rule { strings: $a = "${mark}" condition: $a }\n`,
        'cluster.ndb': `Test.Cluster:0:*:${Buffer.from(mark).toString('hex')}\n`,
      }
      for (const [name, content] of Object.entries(contents)) {
        writeFileSync(join(dir, name), content)
        await apis[0].operate('signatures', 'add', join(dir, name))
      }
      await waitForSignals(['Virus:Test.Cluster', 'Virus:cluster_rule'])
      const stick = join(dir, 'daily.cvd')
      writeFileSync(stick, 'not a database')
      await assert.rejects(apis[0].operate('signatures', 'import', stick), /Run .* signatures import on each worker/)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })

  test('charge exactly what an account has, whichever of them it asks', async () => {
    const options = ['--name', 'few', '--credits', '20', '--rate', '50/1m']
    const created = await worker.operate('accounts', 'create', ...options)
    const { api_key, id } = created as { api_key: string; id: string }
    const few = apis.map(({ url }) => makeCaller(url, api_key))
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, i) => few[i % 2]?.sendFile('malware', 'scan', newNoise(100 + i))),
    )
    const count = (status: number) => answers.filter((answer) => answer?.status === status).length
    assert.deepEqual([count(201), count(201) + count(403), count(429)], [20, 50, 30])
    const accounts = (await apis[1].operate('accounts', 'list')) as { id: string; credit_remaining: number }[]
    assert.equal(accounts.find((account) => account.id === id)?.credit_remaining, 0)
  })

  test('stop looking when the client has left, and charge nothing', async () => {
    const before = await first().readSpent()
    const client = new AbortController()
    const answer = fetch(`${apis[0].url}/v1/malware/scan/url`, {
      method: 'POST',
      headers: { [headers.apiKey]: cluster.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ file_url: `${origin.url}/slow` }),
      signal: client.signal,
    })
    await waitUntil('the worker to fetch it', () => held.length > 0)
    assert.equal(await readWaiting(apis[0]), 1)
    client.abort()
    await assert.rejects(answer)
    const response = held.pop()
    await waitUntil('the worker to give it up', () => response?.closed === true)
    assert.equal(await readWaiting(apis[0]), 0)
    assert.equal(await first().readSpent(), before)
  })

  test('survive a worker that is killed: another one answers', async () => {
    const before = await first().readSpent()
    const answer = first().sendUrl('malware', 'scan', `${origin.url}/slow`)
    await waitUntil('the worker to fetch it', () => held.length === 1)
    const other = await cluster.start('worker', withoutImages)
    const fetched = held.length
    await worker.stop('SIGKILL')
    await waitUntil('the other worker to fetch it', () => held.length > fetched)
    held.splice(0).at(-1)?.end(eicar)
    assert.deepEqual(toVerdict(await answer).signals, [eicarSignal])
    assert.equal((await first().readSpent()) - before, 1)

    const nodes = (await apis[0].operate('nodes')) as { roles: string[]; alive: boolean; engines: unknown[] }[]
    assert.deepEqual(nodes.map(({ roles }) => roles.join()).sort(), ['api', 'api', 'worker', 'worker'])
    assert(nodes.some(({ roles, engines }) => roles.includes('worker') && engines.length > 0))
    worker = other
  })

  test('signatures that were added before are in use on a new worker', async () => {
    assert.deepEqual((await scanMarked()).signals.toSorted(), ['Virus:Test.Cluster', 'Virus:cluster_rule'])
    for (const name of ['cluster.yar', 'cluster.ndb']) await apis[1].operate('signatures', 'remove', name)
    await waitForSignals([])
    await worker.stop()
  })

  test('send callers away, uncharged, when there is no worker, and are not ready then', async () => {
    const before = await first().readSpent()
    const answer = await first().sendFile('malware', 'scan', eicar)
    assert.equal(answer.status, 503, answer.text)
    assert(Number(answer.headers['retry-after']) > 0)
    assert.equal(await first().readSpent(), before)
    const { url } = apis[0]
    await waitUntil('the node to be red', async () => (await fetch(`${url}/readyz`)).status === 503)
    assert.match((await readReadiness(url)).reasons[0] ?? '', /no engines of its own, and no worker was seen/)
  })

  test('send alerts when there is no worker', async (t) => {
    const receiver = await openReceiver(() => ({ status: 204 }))
    t.after(receiver.close)
    const { token, ask } = makeAdmin(apis[0].url, adminToken)
    const channel = {
      kind: 'slack',
      target: `${receiver.url}/alerts`,
      topics: ['engine', 'threats'],
      threats_per_hour: 1,
    }
    await ask(token, 'POST', '/operator/alerts', channel)
    await waitUntil('the alert', () => receiver.at('/alerts').length > 0)
    assert.match(String(receiver.at('/alerts')[0]?.body), /found within an hour/)
  })
})

async function readWaiting(node: Service): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${node.metricsPort}/metrics`)).text()
  return Number(/^assay_errands_waiting(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1])
}
