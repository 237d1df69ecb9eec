import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { startCIcap, whyNoCIcap } from '../../../../scripts/test-c-icap.ts'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { whyNoClamd } from '../clamav/clamd-support.ts'
import { newContent } from '../scans/scan-support.ts'
import { waitFor } from '../support/wait-for.ts'
import { newExternalEngine, openAdapter } from './external-support.ts'

const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$', 'EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('')
const neverAborted = new AbortController().signal

describe('c-icap with virus_scan', { skip: whyNoCIcap || whyNoClamd }, () => {
  let server: Awaited<ReturnType<typeof startCIcap>>
  before(async () => {
    server = await startCIcap()
  })
  after(() => server?.stop())

  const open = (change: Record<string, unknown> = {}, service = 'avscan') =>
    openAdapter({ kind: 'icap', url: `icap://127.0.0.1:${server.port}/${service}`, ...change })

  test('finds EICAR, and calls other content of any size clean', async () => {
    for (const change of [{}, { method: 'REQMOD' }, { preview: false }]) {
      const adapter = await open(change)
      const scan = (text: string) => adapter.scan(newContent(text), { signal: neverAborted, fileName: 'a.txt' })
      const found = await scan(eicar)
      assert.match(found.findings.join(), /^Eicar-Test-Signature/)
      assert.match(found.version ?? '', /^C-ICAP.* CI\d+-/)
      for (const size of [1, 1023, 1024, 1025, 100_000, 3_000_000]) {
        assert.deepEqual((await scan(randomBytes(size).toString('latin1'))).findings, [], `${size} bytes`)
      }
      assert.match((await scan(`${eicar} ${' '.repeat(50)}`)).findings.join(), /^Eicar/)
      await adapter.close()
    }
  })

  test('is not believed when it passes content on that is over its limit', async () => {
    const adapter = await open({}, 'limited')
    const large = randomBytes(6_000_000).toString('latin1')
    const scan = (text: string) => adapter.scan(newContent(text), { signal: neverAborted, fileName: 'a.bin' })
    await assert.rejects(scan(large), /passed the content back instead of answering 204/)
    assert.match((await scan(eicar)).findings.join(), /^Eicar/)
    await adapter.close()
  })

  test('that hangs is left, and answers again when it goes on', async () => {
    const adapter = await open()
    const engine = newExternalEngine(adapter.scan, { timeoutMs: 4000 })
    const scan = (text: string) => engine.scan(newContent(text), { signal: neverAborted }, { depth: 0, name: 'a' })
    assert.match((await scan(eicar)).findings.join(), /^Eicar/)
    server.signal('SIGSTOP')
    await assert.rejects(scan(eicar), EngineDown)
    server.signal('SIGCONT')
    await waitFor(() => engine.external?.findHealth().breaker === 'closed')
    assert.match((await scan(eicar)).findings.join(), /^Eicar/)
    await engine.close()
    await adapter.close()
  })

  test('that is killed in the middle of a scan has not answered, and is used again after its restart', async () => {
    const adapter = await open()
    const scan = (text: string) => adapter.scan(newContent(text), { signal: neverAborted, fileName: 'a' })
    assert.match((await scan(eicar)).findings.join(), /^Eicar/)
    server.signalClamd('SIGSTOP')
    const interrupted = scan(`${eicar}${' '.repeat(500_000)}`)
    interrupted.catch(() => {})
    await waitFor(() => server.countHeld() > 0)
    server.signal('SIGKILL')
    await assert.rejects(interrupted, EngineDown)
    await assert.rejects(scan('text'), EngineDown)
    server.signalClamd('SIGCONT')
    await server.restart()
    assert.deepEqual((await scan('text')).findings, [])
    assert.match((await scan(eicar)).findings.join(), /^Eicar/)
    await adapter.close()
  })
})
