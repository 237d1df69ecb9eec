import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { utimesSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeResolveName } from '../../src/outbound/dial.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { newTestDir } from '../blobs/test-dir.ts'

type Records = { A?: string[]; AAAA?: string[]; silent?: boolean }

/** Answers questions for addresses by UDP, as DNS does; a kind that is not there gets no records. */
async function openNameServer(t: TestContext, names: Record<string, Records>) {
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query)
    asked.push(`${name} ${type}`)
    const records = names[name]
    const addresses = type === 1 ? records?.A : records?.AAAA
    if (records?.silent || addresses?.[0] === 'silent') return
    const answers = (addresses ?? []).map((address) => toRecord(type, address))
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(records === undefined ? 0x8183 : 0x8180, 2)
    head.writeUInt16BE(answers.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => socket.close())
  return { servers: [`127.0.0.1:${socket.address().port}`], asked }
}

function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function toRecord(type: number, address: string): Buffer {
  const bytes =
    type === 1
      ? Buffer.from(address.split('.').map(Number))
      : Buffer.from(
          address
            .split(':')
            .map((group) => group.padStart(4, '0'))
            .join(''),
          'hex',
        )
  const head = Buffer.from('c00c00000001000000000000', 'hex')
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(bytes.length, 10)
  return Buffer.concat([head, bytes])
}

const never = () => new AbortController().signal
const hostsFile = '/nowhere/hosts'

describe('a name', () => {
  test('has all its addresses of both kinds, and one kind is enough', async (t) => {
    const { servers } = await openNameServer(t, {
      'both.test': { A: ['192.0.2.1', '192.0.2.2'], AAAA: ['2001:db8:0:0:0:0:0:1'] },
      'four.test': { A: ['192.0.2.4'] },
      'six.test': { AAAA: ['2001:db8:0:0:0:0:0:6'] },
      'none.test': {},
    })
    const resolve = makeResolveName({ servers, hostsFile })
    assert.deepEqual(await resolve('Both.test.', never()), ['192.0.2.1', '192.0.2.2', '2001:db8::1'])
    assert.deepEqual(await resolve('four.test', never()), ['192.0.2.4'])
    assert.deepEqual(await resolve('six.test', never()), ['2001:db8::6'])
    await assert.rejects(resolve('none.test', never()), /does not lead to a public address/)
    await assert.rejects(resolve('unknown.test', never()), /does not lead to a public address/)
  })

  test('is found in the hosts file first, which is read again when it changes', async (t) => {
    const { servers, asked } = await openNameServer(t, { 'own.test': { A: ['192.0.2.1'] } })
    const file = join(newTestDir(t), 'hosts')
    writeFileSync(file, '# 10.0.0.9 own.test\n10.0.0.1\tother.test Own.Test # mine\nfd00::1 own.test\n')
    const resolve = makeResolveName({ servers, hostsFile: file })
    assert.deepEqual(await resolve('OWN.test', never()), ['10.0.0.1', 'fd00::1'])
    assert.deepEqual(asked, [])
    writeFileSync(file, '')
    // A clock with coarse ticks could leave the time of the change as it was.
    utimesSync(file, 1, 1)
    assert.deepEqual(await resolve('own.test', never()), ['192.0.2.1'])
  })

  test('of this machine is never asked of a name server', async (t) => {
    const { servers, asked } = await openNameServer(t, {})
    const resolve = makeResolveName({ servers, hostsFile })
    for (const name of ['localhost', 'LOCALHOST.', 'a.localhost', 'a.b.localhost.']) {
      assert.deepEqual(await resolve(name, never()), ['127.0.0.1'])
    }
    assert.deepEqual(asked, [])
  })

  test('with one address inside, of the other kind, is refused by the agent', async (t) => {
    const { servers } = await openNameServer(t, { 'mixed.test': { A: ['8.8.8.8'], AAAA: ['0:0:0:0:0:0:0:1'] } })
    const resolve = makeResolveName({ servers, hostsFile })
    const agent = makeGuardedAgent({ policy: makeAddressPolicy([]), resolve })
    const url = new URL('http://mixed.test')
    const call = agent.exchange({ url, method: 'GET', headers: {} }, never(), async () => {})
    await assert.rejects(call, /does not lead to a public address/)
  })
})

describe('a name server that keeps silent', () => {
  test('is given up after its own time, and holds no thread that files need', async (t) => {
    const { servers } = await openNameServer(t, { 'hole.test': { silent: true } })
    const resolve = makeResolveName({ servers, hostsFile })
    const agent = makeGuardedAgent({ policy: makeAddressPolicy([]), resolve, resolveMs: 700 })
    const url = new URL('http://hole.test')
    const calls = Array.from({ length: 32 }, () =>
      agent.exchange({ url, method: 'GET', headers: {} }, never(), async () => {}),
    )
    const ended = Promise.allSettled(calls)
    const first = await Promise.race([ended, readFile(new URL(import.meta.url))])
    assert.ok(Buffer.isBuffer(first), 'a file is read meanwhile')
    for (const call of await ended) assert.match(String('reason' in call && call.reason), /not be resolved in time/)
  })

  test('about one kind of address does not keep the other from being used', async (t) => {
    const { servers } = await openNameServer(t, { 'half.test': { A: ['192.0.2.1'], AAAA: ['silent'] } })
    assert.deepEqual(await makeResolveName({ servers, hostsFile })('half.test', never()), ['192.0.2.1'])
  })

  test('is not waited for by a caller who gives up', async (t) => {
    const { servers } = await openNameServer(t, { 'hole.test': { silent: true } })
    const given = new AbortController()
    const call = makeResolveName({ servers, hostsFile })('hole.test', given.signal)
    given.abort(new Error('enough'))
    await assert.rejects(call, /enough/)
  })
})
