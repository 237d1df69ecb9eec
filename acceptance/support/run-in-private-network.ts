/**
 * Started by nothing-leaves.test.ts in a network and mount namespace of its own. Runs a service there, scans content of
 * all kinds, lets ten minutes pass, and prints as JSON everything that the service asked of the network.
 *
 * The servers that the service may call have addresses on the loopback device. All other addresses lead to the device
 * `canary`, which counts the packets that are sent to them. The only DNS server is the one of this program.
 */
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { headers } from '@assay/contract'
import { eicar } from './archives.ts'
import { images } from './forms.ts'
import { sendTo } from './http.ts'
import { openOrigin } from './origin.ts'
import { openReceiver } from './receiver.ts'
import { toVerdict, uploadImageTo, uploadTo } from './scanning.ts'
import { startService } from './start-service.ts'
import { waitUntil } from './wait-until.ts'

/** Addresses that are public elsewhere, because the service refuses to call others for its callers. */
const hosts: Record<string, string> = {
  'mirror.canary.test': '93.184.215.1',
  'origin.canary.test': '93.184.215.2',
  'receiver.canary.test': '93.184.215.3',
}

const dir = mkdtempSync(join(tmpdir(), 'assay-network-'))
prepareNetwork()
const dns = await openDns()
const mirror = await openOrigin({}, { host: '93.184.215.1', port: 80 })
const origin = await openOrigin({ '/file': eicar, '/picture': images['one.png'] }, { host: '93.184.215.2', port: 80 })
const receiver = await openReceiver(() => ({ status: 204 }), { host: '93.184.215.3' })
const preload = new URL('clock-preload.ts', import.meta.url).href
writeFileSync(join(dir, 'rule.yar'), 'rule canary { strings: $a = "canary" condition: $a }')
const service = await startService({
  ASSAY_SIGNATURE_HOURS: '1',
  ASSAY_SIGNATURE_MIRROR: 'http://mirror.canary.test',
  ASSAY_YARA_RULES: dir,
  ASSAY_NSFW_PROFILE: 'fast',
  ASSAY_VERDICT_CACHE: '0',
  NODE_OPTIONS: `--import=${preload}`,
  CLOCK_MINUTES: '10',
})
try {
  const verdicts = await scanAll()
  const hasUpdated = process.argv[2] === 'freshclam'
  if (hasUpdated) await waitUntil('freshclam to ask its mirror', () => mirror.asked.length > 0)
  process.kill(service.pid, 'SIGUSR2')
  await waitUntil('ten minutes to pass', () => service.log().includes('clock: done'), 100_000)
  // Proves that the device counts: a packet to an address that nobody may ask.
  const packets = countPackets()
  await sendCanary()
  const result = {
    verdicts,
    packets,
    isCounting: countPackets() > packets,
    names: [...new Set(dns.asked)].sort(),
    mirror: mirror.asked,
    origin: origin.asked,
    webhooks: receiver.received.length,
    log: service.log(),
  }
  process.stdout.write(JSON.stringify(result))
} finally {
  await service.stop()
  await Promise.all([mirror.close(), origin.close(), receiver.close()])
  dns.close()
  rmSync(dir, { recursive: true })
}

function prepareNetwork() {
  const ip = (...args: string[]) => execFileSync('ip', args)
  ip('link', 'set', 'lo', 'up')
  for (const address of Object.values(hosts)) ip('address', 'add', `${address}/32`, 'dev', 'lo')
  ip('link', 'add', 'canary', 'type', 'veth', 'peer', 'name', 'other')
  for (const device of ['canary', 'other']) {
    // The kernel itself would announce an IPv6 address, and ask for the neighbours of an IPv4 address.
    writeFileSync(`/proc/sys/net/ipv6/conf/${device}/disable_ipv6`, '1')
    ip('link', 'set', device, 'arp', 'off', 'up')
  }
  ip('address', 'add', '10.213.0.2/24', 'dev', 'canary')
  ip('route', 'add', 'default', 'dev', 'canary')
  writeFileSync(join(dir, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n')
  execFileSync('mount', ['--bind', join(dir, 'resolv.conf'), '/etc/resolv.conf'])
}

function countPackets(): number {
  const line = readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .find((text) => text.trim().startsWith('canary:'))
  return Number(line?.trim().split(/\s+/)[10])
}

async function sendCanary() {
  const socket = createSocket('udp4')
  await new Promise((resolve) => socket.send('canary', 9, '192.0.2.1', resolve))
  socket.close()
}

/** Answers questions for IPv4 addresses of `hosts`. Every other name does not exist. */
async function openDns() {
  const asked: string[] = []
  const server = createSocket('udp4')
  server.on('message', (query, from) => {
    const { name, end } = readName(query)
    asked.push(name)
    const address = hosts[name]
    const isAddress = query.readUInt16BE(end) === 1 && address !== undefined
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2)
    head.fill(0, 6, 12)
    if (isAddress) head.writeUInt16BE(1, 6)
    const answer = isAddress
      ? [Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]), Buffer.from(address.split('.').map(Number))]
      : []
    server.send(Buffer.concat([head, query.subarray(12, end + 4), ...answer]), from.port, from.address)
  })
  await new Promise<void>((resolve) => server.bind(53, '127.0.0.1', resolve))
  return { asked, close: () => server.close() }
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

/** Files, pictures and URLs, for a verdict at once and in the background with a webhook. */
async function scanAll(): Promise<string[]> {
  const { url, apiKey } = service
  const statuses = [
    toVerdict(await uploadTo(url, apiKey, eicar)).status,
    toVerdict(await uploadTo(url, apiKey, 'harmless')).status,
    toVerdict(await uploadImageTo(url, apiKey, images['one.png'])).status,
  ]
  const post = (path: string, body: object) =>
    sendTo(url, {
      method: 'POST',
      path,
      headers: { [headers.apiKey]: apiKey, 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
    })
  const callback = { callback_url: `http://receiver.canary.test:${new URL(receiver.url).port}/hook` }
  const file = { file_url: 'http://origin.canary.test/file' }
  const picture = { file_url: 'http://origin.canary.test/picture' }
  statuses.push(toVerdict(await post('/v1/malware/scan/url', file)).status)
  statuses.push(toVerdict(await post('/v1/nsfw/images/scan/url', picture)).status)
  for (const path of ['/v1/malware/submit/url', '/v1/nsfw/images/submit/url']) {
    const { status, text } = await post(path, { ...(path.includes('nsfw') ? picture : file), ...callback })
    if (status !== 202) throw new Error(`${path}: ${status} ${text}`)
  }
  await waitUntil('both webhooks', () => receiver.received.length === 2)
  return statuses
}
