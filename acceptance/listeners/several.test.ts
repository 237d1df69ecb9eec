import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeCertificates } from '../../packages/server/test/support/certificates.ts'
import { scanAsOcisClamd } from '../../packages/server/test/support/listener-clients.ts'
import { openFakeClamd } from '../support/fake-clamd.ts'
import { lacksClient, talk, toStream } from '../support/listeners.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested, readSpent } from '../support/scanning.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const clamdscan = '/usr/bin/clamdscan'
const icapClient = '/usr/bin/c-icap-client'
const ownKey = 'the-key-of-the-first-account'
const adminToken = 'the-token-of-an-operator-for-the-status'

/** Runs a client without blocking this process, in which the engine runs. */
async function runClient(
  path: string,
  args: string[],
  input: Buffer | string = '',
): Promise<{ code: number; out: string }> {
  const child = spawn(path, args, { timeout: 60_000 })
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('latin1').on('data', (text) => {
      out += text
    })
  child.stdin.on('error', () => {}).write(input)
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code: code ?? -1, out }))
  })
}

describe('several listeners, of different accounts, with TLS and a unix socket', { skip: alreadyTested }, () => {
  let dir = ''
  let path = ''
  let clamd: Awaited<ReturnType<typeof openFakeClamd>>
  let service: Service
  let branch: { id: string; api_key: string }
  let certificates: Record<'ca' | 'server' | 'client' | 'other', { cert: string; key: string }>

  const getSettings = () => ({
    ...withoutImages,
    ASSAY_CONFIG: join(dir, 'assay.toml'),
    ASSAY_DATA_DIR: join(dir, 'data'),
    ASSAY_BOOTSTRAP_KEY: ownKey,
    ASSAY_ADMIN_TOKEN: adminToken,
    ASSAY_CLAMD: join(dir, 'clamd.sock'),
  })
  const start = (tables: string) => {
    writeFileSync(join(dir, 'assay.toml'), tables)
    return startService(getSettings())
  }

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-several-'))
    path = join(dir, 'own.sock')
    copyPreparedDatabase(join(dir, 'data'))
    clamd = await openFakeClamd(join(dir, 'clamd.sock'))
    const { newAuthority, issue } = makeCertificates(dir)
    const ca = newAuthority('ca')
    certificates = { ca, server: issue(ca, 'localhost'), client: issue(ca, 'branch'), other: issue(ca, 'other') }
    const own = `[[listeners]]\nname = "own"\nkind = "clamd"\naddress = "unix:${path}"\nmode = "0606"
api_key = "${ownKey}"\non_failure = "found"\nmax_mb = 1\n`
    const first = await start(own)
    branch = (await first.operate('accounts', 'create', '--name', 'Branch')) as typeof branch
    // A killed service leaves its socket behind.
    await first.stop('SIGKILL')
    assert.equal(lstatSync(path).isSocket(), true)
    writeFileSync(join(dir, 'branch.apikey'), `${branch.api_key}\n`)
    const shared = `api_key_file = "${join(dir, 'branch.apikey')}"\naddress = "tcp://127.0.0.1:0"\n`
    const tls = `tls_cert = "${certificates.server.cert}"\ntls_key = "${certificates.server.key}"\n`
    service = await start(`${own}
[[listeners]]\nname = "branch"\nkind = "clamd"\n${shared}${tls}client_ca = "${ca.cert}"\nclients = ["branch"]
[[listeners]]\nname = "proxy"\nkind = "icap"\n${shared}${tls}
[[listeners]]\nname = "elsewhere"\nkind = "clamd"\n${shared}networks = ["192.0.2.0/24"]\n`)
  })
  after(async () => {
    await service.stop()
    await clamd.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const findPort = (name: string) => Number(new RegExp(`"listener":"${name}".*"port":(\\d+)`).exec(service.log())?.[1])
  /** The log arrives with a delay. */
  const waitForLog = async (pattern: RegExp): Promise<string[]> => {
    await waitUntil(`${pattern} in the log`, () => pattern.test(service.log()))
    return pattern.exec(service.log()) ?? []
  }
  const countCharges = async () => ({
    own: await readSpent({ url: service.url, apiKey: ownKey }),
    branch: await readSpent({ url: service.url, apiKey: branch.api_key }),
  })
  const write = (name: string, content: string | Buffer) => {
    writeFileSync(join(dir, name), content)
    return join(dir, name)
  }
  /** Sends to the listener `branch` through openssl, and returns the reply. */
  const sendSecurely = async (input: Buffer, pair?: { cert: string; key: string }) => {
    const identity = pair === undefined ? [] : ['-cert', pair.cert, '-key', pair.key]
    const place = ['-connect', `127.0.0.1:${findPort('branch')}`, '-CAfile', certificates.ca.cert]
    const { out } = await runClient('openssl', ['s_client', '-quiet', ...place, ...identity], input)
    return /stream: .*/.exec(out)?.[0] ?? ''
  }

  test('clamdscan scans over a unix socket, in place of one that was left behind', {
    skip: lacksClient(clamdscan, 'clamdscan'),
  }, async () => {
    assert.equal((lstatSync(path).mode & 0o777).toString(8), '606')
    const before = await countCharges()
    const config = write('clamdscan.conf', `LocalSocket ${path}\n`)
    const files = [write('clean.txt', 'good one'), write('threat.txt', 'bad one')]
    const { code, out } = await runClient(clamdscan, [`--config-file=${config}`, '--stream', ...files])
    assert.equal(code, 1, out)
    assert.match(out, /clean\.txt: OK\n.*threat\.txt: Fake\.Threat FOUND\n/)
    assert.equal(await scanAsOcisClamd(path, Buffer.alloc(1_100_000, 'good ')), 'infected')
    assert.deepEqual(await countCharges(), { ...before, own: before.own + 2 })
    const failed = await runClient(clamdscan, [`--config-file=${config}`, '--stream', write('fails.txt', 'closes one')])
    assert.match(failed.out, /fails\.txt: Assay\.NotScanned\.EngineFailed FOUND\n/)
  })

  test('a client certificate opens the listener of another account, which is charged and has the result', async () => {
    const before = await countCharges()
    const input = Buffer.concat([Buffer.from('zINSTREAM\0'), toStream('bad for the branch')])
    assert.equal(await sendSecurely(input, certificates.client), 'stream: Fake.Threat FOUND\0')
    assert.deepEqual(await countCharges(), { ...before, branch: before.branch + 1 })
    const [, id] = await waitForLog(/"listener":"branch".*"scanId":"([^"]+)"/)
    const read = async (key: string) =>
      (await fetch(`${service.url}/v1/malware/${id}`, { headers: { 'X-API-Key': key } })).status
    assert.deepEqual([await read(branch.api_key), await read(ownKey)], [200, 422])
    const refused = 'stream: The client certificate is not accepted. ERROR\0'
    assert.equal(await sendSecurely(input), refused)
    assert.equal(await sendSecurely(input, certificates.other), refused)
    assert.equal(await scanAsOcisClamd(findPort('branch'), Buffer.from('good')), 'failed')
    assert.deepEqual(await countCharges(), { ...before, branch: before.branch + 1 })
    await waitForLog(/"listener":"branch".*the client has no certificate/)
    await waitForLog(/"listener":"branch".*is not listed: CN=other/)
    await waitForLog(/"listener":"branch".*the TLS handshake failed: ERR_SSL_/)
  })

  test('c-icap-client scans over TLS', {
    skip: lacksClient(icapClient, 'c-icap-client'),
  }, async () => {
    const before = await countCharges()
    const send = async (file: string) => {
      const place = ['-i', '127.0.0.1', '-p', String(findPort('proxy')), '-s', 'avscan', '-tls', '-tls-no-verify', '-v']
      return (await runClient(icapClient, [...place, '-f', file, '-resp', 'http://x.test/a', '-o', `${file}.out`])).out
    }
    assert.match(await send(write('bad.txt', 'bad over icap')), /X-Infection-Found: .*Threat=Fake\.Threat;/)
    assert.deepEqual(await countCharges(), { ...before, branch: before.branch + 1 })
  })

  test('clients outside of the networks of a listener are reset', async () => {
    let fault: NodeJS.ErrnoException | undefined
    const socket = connect({ port: findPort('elsewhere'), host: '127.0.0.1' }).on('error', (error) => {
      fault = error
    })
    socket.write('zPING\0')
    await waitUntil('the reset', () => socket.destroyed)
    assert.equal(fault?.code, 'ECONNRESET')
    await waitForLog(/"listener":"elsewhere".*its address is in none of the networks/)
  })

  test('limits of one account do not affect the listeners of the other', async () => {
    await service.operate('accounts', 'suspend', branch.id)
    const input = Buffer.concat([Buffer.from('zINSTREAM\0'), toStream('good')])
    await waitUntil('the suspension', async () =>
      (await sendSecurely(input, certificates.client)).includes('is not valid'),
    )
    assert.equal(await scanAsOcisClamd(path, Buffer.from('good still')), 'accepted')
    const { checks, faults } = await diagnose()
    assert.match(checks.get('listener own') ?? '', /^clamd on unix:.* for the account /)
    assert.match(checks.get('certificate of the listener branch') ?? '', /^valid until /)
    assert.match(
      faults.get('listener branch') ?? '',
      /the API key is not valid: every scan will be refused\. Create one: /,
    )
    await service.operate('accounts', 'resume', branch.id)
    await waitUntil('the end of the suspension', async () => (await listListeners())[1]?.account !== null)
  })

  async function listListeners() {
    const headers = { Authorization: `Bearer ${adminToken}` }
    const answer = await fetch(`${service.url}/admin/v1/operator/status`, { headers })
    return ((await answer.json()) as { listeners: Record<string, unknown>[] }).listeners
  }

  async function diagnose() {
    const { out } = await runProgram(getSettings(), 'doctor', '--json')
    const report = JSON.parse(out) as { findings: { check: string; ok: boolean; says: string }[] }
    const toMap = (ok: boolean) =>
      new Map(report.findings.filter((one) => one.ok === ok).map(({ check, says }) => [check, says]))
    return { checks: toMap(true), faults: toMap(false) }
  }

  test('the status and the metrics show each listener', async () => {
    const listeners = await listListeners()
    const shown = listeners.map(({ name, kind, address, tls, account }) => [
      name,
      kind,
      String(address).replace(/\d+$/, 'N'),
      tls,
      (account as { name: string } | null)?.name,
    ])
    const [[, , , , ownName] = []] = shown
    assert.deepEqual(shown, [
      ['own', 'clamd', `unix:${path}`, 'off', ownName],
      ['branch', 'clamd', 'tcp://127.0.0.1:N', 'client certificates', 'Branch'],
      ['proxy', 'icap', 'tcp://127.0.0.1:N', 'on', 'Branch'],
      ['elsewhere', 'clamd', 'tcp://127.0.0.1:N', 'off', 'Branch'],
    ])
    assert.equal(listeners.find(({ name }) => name === 'elsewhere')?.rejected, 1)
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    assert.match(metrics, /assay_listener_connections\{listener="own",.*\} 0\n/)
    assert.match(metrics, /assay_listener_rejected_total\{listener="elsewhere",.*\} 1\n/)
  })

  test('a stop removes the socket, and is not taken for clean', async () => {
    const socket = connect({ path })
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.on('error', () => {})
    await waitUntil('the connection', () => !socket.connecting)
    assert.equal(await talk(findPort('elsewhere'), 'zPING\0'), '')
    process.kill(service.pid, 'SIGTERM')
    await waitUntil('the end', () => socket.destroyed || socket.readableEnded)
    assert.equal(heard, 'stream: Assay.NotScanned.ServiceUnavailable FOUND\n')
    assert.throws(() => lstatSync(path), { code: 'ENOENT' })
  })
})
