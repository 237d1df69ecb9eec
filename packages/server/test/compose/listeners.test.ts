import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fitListeners } from '../../src/compose/connections.ts'
import { findKeyFault, openListeners, testKeyFault } from '../../src/compose/listeners.ts'
import type { Config } from '../../src/config/load-config.ts'
import { toRestrictionsText } from '../../src/domain/accounts/keys.ts'
import { newEngine } from '../scans/scan-support.ts'
import { silentLog } from '../support/silent-log.ts'

type Deps = Parameters<typeof openListeners>[1]

/** The ISTag of an ICAP listener, read with OPTIONS. */
async function readTag(t: TestContext, malware: Partial<Deps['malware']>): Promise<string | undefined> {
  const config = {
    icapListen: { host: '127.0.0.1', port: 0 },
    icapKey: 'key of the test',
    listeners: [],
  } as unknown as Config
  const ports = Promise.withResolvers<number>()
  const { close } = await openListeners(config, {
    gate: { admit: async () => ({ outcome: 'allowed', caller: { isTest: false, restrictions: '' } }) },
    metrics: { byLabel() {}, countFailure() {} },
    log: { ...silentLog, info: ({ port }: { port: number }) => ports.resolve(port) },
    malware: {
      listEngines: () => [newEngine()],
      countWaiting: () => 0,
      degradation: { find: () => undefined },
      external: { policyVersion: undefined },
      ...malware,
    },
    isTest: false,
  } as unknown as Deps)
  t.after(close)
  const socket = connect(await ports.promise, '127.0.0.1')
  socket.write('OPTIONS icap://localhost/avscan ICAP/1.0\r\nHost: localhost\r\n\r\n')
  let answer = ''
  for await (const chunk of socket) {
    answer += chunk
    if (answer.includes('\r\n\r\n')) break
  }
  return /ISTag: (".+?")/.exec(answer)?.[1]
}

test('the ISTag changes with engines and with the policy, because verdicts do', async (t) => {
  const tag = await readTag(t, {})
  assert.match(tag ?? '', /^"[0-9a-f]{24}"$/)
  assert.equal(await readTag(t, {}), tag)
  const others = [
    await readTag(t, { external: { policyVersion: 'any 1' } }),
    await readTag(t, { external: { policyVersion: 'quorum 2 1' } }),
    await readTag(t, { listEngines: () => [newEngine(), newEngine()] }),
  ]
  assert.equal(new Set([tag, ...others]).size, 4)
})

test('a listener that cannot be opened says what to do, and keeps the file that is in its way', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-listeners-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'a.sock')
  writeFileSync(file, 'a document')
  const open = (path: string) =>
    openListeners(
      { icapListen: { path }, icapKey: 'key of the test', listeners: [] } as unknown as Config,
      {
        gate: { admit: async () => ({ outcome: 'allowed', caller: { isTest: false, restrictions: '' } }) },
        metrics: { byLabel() {}, countFailure() {} },
        log: silentLog,
      } as unknown as Deps,
    )
  const start = `ASSAY_ICAP_LISTEN cannot listen on unix:${file}: ${file} exists and is not a socket.`
  await assert.rejects(open(file), {
    message: `${start} Remove the file or stop the program that uses it, or choose another path.`,
  })
  assert.equal(readFileSync(file, 'utf8'), 'a document')
  await assert.rejects(open(join(dir, 'missing', 'b.sock')), /ENOENT.*Create its directory/)
})

test('a key that would call every file clean or refuse every scan is found before', () => {
  type Arguments = Parameters<typeof findKeyFault>
  const find = (caller: { isTest?: boolean; restrictions?: string }, address: object = { host: '', port: 1 }) => {
    const answer = { outcome: 'admitted', caller: { isTest: false, restrictions: '', ...caller } }
    return findKeyFault({ address } as Arguments[0], answer as Arguments[1], false)
  }
  assert.equal(find({}), undefined)
  assert.equal(find({ isTest: true }), testKeyFault)
  const networks = toRestrictionsText({ allow: null, kinds: null, networks: ['127.0.0.0/8'] })
  assert.equal(find({ restrictions: networks }), undefined)
  assert.match(find({ restrictions: networks }, { path: '/a.sock' }) ?? '', /over a unix socket/)
  const reading = toRestrictionsText({ allow: ['read'], kinds: null, networks: null })
  assert.match(find({ restrictions: reading }) ?? '', /may not scan/)
})

test('listeners take at most half of the connections that the limit of open files allows', () => {
  assert.deepEqual(fitListeners([256, 256], 10_000), [256, 256])
  assert.deepEqual(fitListeners([256, 256], 432), [108, 108])
  assert.deepEqual(fitListeners([4096, 1], 400), [199, 1])
  assert.deepEqual(fitListeners([], 400), [])
})
