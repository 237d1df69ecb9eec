import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isRunning } from '../../../../acceptance/support/processes.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { makeClamdClient } from '../../src/engines/clamav/client.ts'
import { makeSandboxChooser } from '../../src/engines/clamav/open-own-clamd.ts'
import { eicar, newContent, newZip } from '../engines/unpack-archives.ts'
import { noAbort } from '../engines/yara-support.ts'
import { waitFor } from '../support/wait-for.ts'
import { findPid, openTestClamd, whyNoClamd } from './clamd-support.ts'

const options = { skip: whyNoClamd, timeout: 300_000 }
const marker = Buffer.from('assay-test-marker-of-the-operator')
const ownRule = `Operator.Marker:0:*:${marker.toString('hex')}\n`

type Closers = { after(close: () => unknown): void }

function newDataDir(t: Closers): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-clamd-'))
  chmodSync(dir, 0o755)
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

async function openClamd(t: Closers, dataDir = newDataDir(t)) {
  const clamav = await openTestClamd(dataDir)
  t.after(clamav.close)
  return { ...clamav, dataDir }
}

function writeOwn(dataDir: string, name: string, text: string) {
  mkdirSync(join(dataDir, 'signatures', 'own'), { recursive: true })
  writeFileSync(join(dataDir, 'signatures', 'own', name), text)
}

/** Starts another process that holds a clamd; fails when clamd does not start in time. */
async function startHolder(t: TestContext, dataDir: string) {
  const holder = spawn(process.execPath, [fileURLToPath(new URL('clamd-holder.ts', import.meta.url)), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => holder.kill('SIGKILL'))
  const [line] = await once(holder.stdout, 'data', { signal: AbortSignal.timeout(60_000) })
  const { pid, fault } = JSON.parse(String(line)) as { pid: number; fault?: string }
  return { holder, pid, fault }
}

describe('a clamd of our own', options, () => {
  /** The clamd of all tests that change nothing. */
  let shared: Awaited<ReturnType<typeof openClamd>>
  const closers: (() => unknown)[] = []
  before(async () => {
    shared = await openClamd({ after: (close) => closers.unshift(close) })
  })
  after(async () => {
    for (const close of closers) await close()
  })

  test('finds the test virus in memory and in storage', async () => {
    const { engine } = shared
    const large = Buffer.concat([Buffer.alloc(2_000_000, 'no virus here. '), newZip([{ data: eicar }])])
    const samples = [newContent(eicar), newContent(newZip([{ data: eicar }]), { spooled: true })]
    for (const content of samples) {
      const { findings } = await engine.scan(content, noAbort)
      assert.match(findings.join(), /eicar/i)
    }
    const zipped = newZip([{ name: 'a.bin', data: Buffer.alloc(2_000_000, 'x'), method: 0 }, { data: eicar }])
    assert.match((await engine.scan(newContent(zipped, { spooled: true }), noAbort)).findings.join(), /eicar/i)
    const clean = { findings: [], doubts: [], suspectsContainer: false }
    assert.deepEqual(await engine.scan(newContent(Buffer.from('hello')), noAbort), clean)
    assert.deepEqual(await engine.scan(newContent(large.subarray(0, 2_000_000), { spooled: true }), noAbort), clean)
    const state = engine.findState()
    assert.match(state?.version ?? '', /^ClamAV \d+\.\d+\.\d+$/)
    assert.ok((state?.signatures ?? 0) > 10)
  })

  test('runs as an ordinary user, without network, and unpacks into a private directory', async (t) => {
    const { engine, dataDir, pid } = shared
    assert.ok(pid !== undefined)
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    assert.match(status, /^NoNewPrivs:\s+1$/m)
    if (process.getuid?.() === 0) assert.doesNotMatch(status, /^Uid:.*\b0\b/m)
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'latin1'), /ASSAY|HOME=/)

    const binary = readlinkSync(`/proc/${pid}/exe`)
    const { chooseForDir } = makeSandboxChooser({ binary, dataDir, scratchMegabytes: 64, acceptsDisk: false })
    if (chooseForDir(join(dataDir, 'clamav')).kind !== 'private')
      return t.diagnostic('there is no private sandbox here')
    assert.match(status, /^CapEff:\s+0+$/m)
    assert.notEqual(readlinkSync(`/proc/${pid}/ns/net`), readlinkSync('/proc/self/ns/net'))
    assert.notEqual(readlinkSync(`/proc/${pid}/ns/mnt`), readlinkSync('/proc/self/ns/mnt'))
    const scratch = join(dataDir, 'clamav', 'scratch')
    const mounts = readFileSync(`/proc/${pid}/mounts`, 'utf8')
    assert.match(mounts, new RegExp(`^\\S+ ${scratch} tmpfs .*noexec`, 'm'))

    const inside = `/proc/${pid}/root${scratch}`
    let seenInside = 0
    const data = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * i) & 255))
    const members = Array.from({ length: 6 }, (_, i) => ({ name: `${i}.bin`, data }))
    let done = false
    const scan = engine.scan(newContent(newZip(members), { spooled: true }), noAbort).finally(() => {
      done = true
    })
    while (!done) {
      seenInside = Math.max(seenInside, readdirSync(inside).length)
      assert.deepEqual(readdirSync(scratch), [])
      await pause(1)
    }
    assert.deepEqual((await scan).findings, [])
    assert.ok(seenInside > 0, 'clamd unpacked nothing while it was looked at')
    // clamd replies first and removes its files then.
    await waitFor(() => readdirSync(inside).length === 0)
  })

  test('has its directory to itself: a second one is refused, and the first goes on', async () => {
    const { engine, dataDir, pid } = shared
    await assert.rejects(openTestClamd(dataDir), OperatorMistake)
    assert.ok(pid !== undefined && isRunning(pid))
    assert.match((await engine.scan(newContent(eicar), noAbort)).findings.join(), /eicar/i)
  })

  test('does not outlive a killed parent', async (t) => {
    const dataDir = newDataDir(t)
    const { holder, pid } = await startHolder(t, dataDir)
    assert.ok(isRunning(pid))
    holder.kill('SIGKILL')
    await waitFor(() => !isRunning(pid))
  })

  test('ends when it is closed, and leaves no socket that answers', async (t) => {
    const { close, dataDir, pid } = await openClamd(t)
    assert.ok(pid !== undefined && isRunning(pid))
    await close()
    assert.equal(isRunning(pid), false)
    assert.equal(findPid(dataDir), undefined)
  })

  test('starts although a file of the operator’s is broken, uses the others and names it', async (t) => {
    const dataDir = newDataDir(t)
    writeOwn(dataDir, 'broken.ndb', 'this is no signature at all\n')
    writeOwn(dataDir, 'good.ndb', ownRule)
    // In a process of its own: a clamd that never starts must not delay the other tests.
    const { fault } = await startHolder(t, dataDir)
    assert.match(fault ?? '', /broken\.ndb cannot be loaded/)
    const client = makeClamdClient({ address: { path: join(dataDir, 'clamav', 'clamd.sock') } })
    assert.match(await client.scan(newContent(marker), noAbort), /Operator\.Marker/)
    client.close()
  })

  test('takes new signatures in while it runs, and refuses broken ones without losing any', async (t) => {
    const { engine, dataDir, findFault } = await openClamd(t)
    const find = async () => (await engine.scan(newContent(marker), noAbort)).findings
    const verdictVersion = engine.findState()?.verdictVersion
    assert.deepEqual(await find(), [])
    writeOwn(dataDir, 'marker.ndb', ownRule)
    await waitFor(() => engine.findState()?.verdictVersion !== verdictVersion)
    assert.deepEqual(await find(), ['Operator.Marker'])
    writeOwn(dataDir, 'marker.ndb', 'broken')
    await waitFor(() => findFault() !== undefined)
    assert.deepEqual(await find(), ['Operator.Marker'])
  })

  test('takes lists in that find nothing by themselves', async (t) => {
    const { engine, dataDir, findFault } = await openClamd(t)
    for (const [name, text] of Object.entries({
      'harmless.fp': '44d88612fea8a8f36de82e1278abb02f:68:Harmless\n',
      'harmless.sfp': `${'a'.repeat(64)}:68:Harmless:73\n`,
      'ignored.ign2': 'Some.Signature\n',
      'names.cdb': 'Assay.Test:CL_TYPE_ZIP:*:virus-of-a-test:*:*:*:*:*:*\n',
    })) {
      const verdictVersion = engine.findState()?.verdictVersion
      writeOwn(dataDir, name, text)
      await waitFor(() => engine.findState()?.verdictVersion !== verdictVersion || findFault() !== undefined)
      assert.equal(findFault(), undefined, name)
    }
  })
})
