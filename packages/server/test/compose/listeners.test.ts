import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { openListeners } from '../../src/compose/listeners.ts'
import type { Config } from '../../src/config/load-config.ts'
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
