import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { EngineBusy, EngineDown, type Work } from '../../src/domain/ports/engines.ts'
import { ContentRefused, type ExternalAdapter } from '../../src/engines/external/adapter.ts'
import { newContent } from '../scans/scan-support.ts'
import { newExternalEngine } from './external-support.ts'

type Scan = ExternalAdapter['scan']

const newWork = (): Work => ({ signal: new AbortController().signal })
const found = { findings: ['Found'], version: 'Other 1.0' }
const nothing = { findings: [], doubts: [], suspectsContainer: false }
const isProbe = ({ fileName }: { fileName: string }) => fileName === 'probe.txt'

/** Probes are answered, and scans as the test says. */
const scanWith =
  (scan: Scan): Scan =>
  async (content, options) =>
    isProbe(options) ? { findings: [], version: 'Other 1.0' } : scan(content, options)

function open(t: TestContext, scan: Scan, change: Parameters<typeof newExternalEngine>[1] = {}) {
  const engine = newExternalEngine(scan, change)
  t.after(engine.close)
  return engine
}

const content = newContent('content')

describe('an external engine', () => {
  test('gives findings without control characters and in bounded length and number, and its version', async (t) => {
    const findings = ['Plain', 'Bad\r\nName\u001b[0m', '', 'x'.repeat(1000), ...Array(100).fill('More')]
    const engine = open(
      t,
      scanWith(async () => ({ findings, version: 'Other\n2.0' })),
    )
    const report = await engine.scan(content, newWork())
    assert.deepEqual(report.findings.slice(0, 3), ['Plain', 'Bad<U+000D><U+000A>Name<U+001B>[0m', 'Unnamed'])
    assert.equal(report.findings[3]?.length, 200)
    assert.equal(report.findings.length, 50)
    assert.equal(engine.findState()?.version, 'Other<U+000A>2.0')
  })

  test('repeats a failed scan as often as it may', async (t) => {
    let calls = 0
    const engine = open(
      t,
      scanWith(async () => {
        if (++calls === 1) throw new EngineDown('away')
        return found
      }),
      { retries: 1 },
    )
    assert.deepEqual(await engine.scan(content, newWork()), { ...nothing, findings: ['Found'] })
    assert.equal(calls, 2)
  })

  test('that fails throws when it is required, and tells the reason when it is advisory', async (t) => {
    const scan = scanWith(async () => {
      throw new TypeError('a mistake of the adapter')
    })
    const reason = /^The engine other did not answer: a mistake of the adapter$/
    await assert.rejects(open(t, scan).scan(content, newWork()), (error) => {
      assert.ok(error instanceof EngineDown && !(error instanceof EngineBusy))
      assert.match(error.message, reason)
      return true
    })
    assert.deepEqual(await open(t, scan, { isRequired: false }).scan(content, newWork()), {
      ...nothing,
      failure: 'a mistake of the adapter',
    })
  })

  test('that hangs fails after its time, also when the adapter ignores the signal', async (t) => {
    const engine = open(
      t,
      scanWith(() => new Promise(() => {})),
      { timeoutMs: 100, isRequired: false },
    )
    assert.equal((await engine.scan(content, newWork())).failure, 'no answer within 100 ms')
  })

  test('that hangs ends with the scan, whose reason it throws unchanged', async (t) => {
    const engine = open(
      t,
      scanWith(() => new Promise(() => {})),
      { isRequired: false },
    )
    const controller = new AbortController()
    const scanning = engine.scan(content, { signal: controller.signal })
    const reason = new Error('the caller left')
    controller.abort(reason)
    await assert.rejects(scanning, reason)
  })

  test('of an advisory kind has no opinion of content that it did not read whole', async (t) => {
    const scan = scanWith(async () => ({ findings: [], version: undefined, doubts: ['EncryptedContent' as const] }))
    assert.deepEqual((await open(t, scan).scan(content, newWork())).doubts, ['EncryptedContent'])
    const advisory = await open(t, scan, { isRequired: false }).scan(content, newWork())
    assert.deepEqual([advisory.doubts, advisory.failure], [[], 'it says EncryptedContent'])
    const lacking = scanWith(async () => ({ findings: [], version: undefined, degraded: 'The signatures are old.' }))
    assert.deepEqual(await open(t, lacking).scan(content, newWork()), nothing)
    const noted = await open(t, lacking, { isRequired: false }).scan(content, newWork())
    assert.equal(noted.failure, 'it is degraded: The signatures are old.')
  })

  test('runs only so many scans at once', async (t) => {
    let running = 0
    let most = 0
    const engine = open(
      t,
      scanWith(async () => {
        most = Math.max(most, ++running)
        await setImmediate()
        running--
        return found
      }),
      { concurrency: 2 },
    )
    await Promise.all(Array.from({ length: 10 }, () => engine.scan(content, newWork())))
    assert.equal(most, 2)
  })
})

test('filters leave out content by size, by type and by depth', async (t) => {
  const png = newContent('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')
  const text = newContent('plain text')
  const cases: [
    change: Parameters<typeof newExternalEngine>[1],
    scanned: typeof png,
    depth: number,
    isSeen: boolean,
  ][] = [
    [{ minBytes: 11 }, text, 0, false],
    [{ minBytes: 10 }, text, 0, true],
    [{ maxBytes: 9 }, text, 0, false],
    [{ maxBytes: 10 }, text, 0, true],
    [{ types: ['image/*'] }, png, 0, true],
    [{ types: ['image/*'] }, text, 0, false],
    [{ types: ['text/plain'] }, text, 0, true],
    [{ types: ['application/pdf', 'image/png'] }, png, 0, true],
    [{ skipTypes: ['image/png'] }, png, 0, false],
    [{ skipTypes: ['image/*'] }, text, 0, true],
    [{ types: ['image/*'], skipTypes: ['image/png'] }, png, 0, false],
    [{}, text, 1, false],
    [{ seesMembers: true }, text, 1, true],
    [{ seesMembers: true }, text, 0, true],
  ]
  for (const [change, scanned, depth, isSeen] of cases) {
    const engine = open(
      t,
      scanWith(async () => found),
      change,
    )
    const report = await engine.scan(scanned, newWork(), { depth, name: 'name' })
    assert.deepEqual(
      [report.isSkipped ?? false, report.findings.length],
      [!isSeen, isSeen ? 1 : 0],
      JSON.stringify(change),
    )
  }
})

test('the name of a member loses its path', async (t) => {
  const names: string[] = []
  const engine = open(
    t,
    scanWith(async (_, { fileName }) => {
      names.push(fileName)
      return found
    }),
  )
  for (const name of ['a/b\\c.txt', '', 'd\r\ne']) await engine.scan(content, newWork(), { depth: 0, name })
  assert.deepEqual(names, ['c.txt', 'content', 'd<U+000D><U+000A>e'])
  // The replacement of the first character moves a pair of surrogates onto the end.
  for (let length = 185; length < 200; length++) {
    const name = `\r${'x'.repeat(length)}😀😀😀😀`
    await engine.scan(content, newWork(), { depth: 0, name })
    assert.ok(names.at(-1)?.isWellFormed(), String(length))
  }
})

describe('the circuit breaker', () => {
  test('opens after three failures in a row: scans fail at once, until a probe is answered', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    let isDead = true
    let scans = 0
    const engine = open(t, async (_, options) => {
      if (!isProbe(options)) scans++
      if (isDead) throw new EngineDown('dead')
      return found
    })
    await setImmediate()
    // The first check has failed once by now.
    for (let i = 0; i < 2; i++) await assert.rejects(engine.scan(content, newWork()))
    assert.equal(engine.external?.findHealth().breaker, 'open')
    await assert.rejects(engine.scan(content, newWork()), /did not answer: dead/)
    assert.equal(scans, 2)
    t.mock.timers.tick(5000)
    await setImmediate()
    assert.equal(engine.external?.findHealth().breaker, 'open')
    isDead = false
    t.mock.timers.tick(5000)
    await setImmediate()
    assert.deepEqual(
      { ...engine.external?.findHealth(), p50: 0, p99: 0 },
      { breaker: 'closed', fault: undefined, scans: 2, failures: 2, p50: 0, p99: 0 },
    )
    assert.deepEqual((await engine.scan(content, newWork())).findings, ['Found'])
  })

  test('closes at once when only the content made scans fail', async (t) => {
    const engine = open(
      t,
      scanWith(async () => {
        throw new EngineDown('crashed by the content')
      }),
    )
    await setImmediate()
    for (let i = 0; i < 5; i++) {
      await assert.rejects(engine.scan(content, newWork()))
      await setImmediate()
    }
    assert.equal(engine.external?.findHealth().breaker, 'closed')
  })

  test('does not count content that the engine does not take, which is not tried again', async (t) => {
    let calls = 0
    const engine = open(
      t,
      scanWith(async () => {
        calls++
        throw new ContentRefused('too large')
      }),
      { retries: 3 },
    )
    for (let i = 0; i < 5; i++) await assert.rejects(engine.scan(content, newWork()), /too large/)
    assert.deepEqual([calls, engine.external?.findHealth().breaker], [5, 'closed'])
  })

  test('does not check an engine again that has not answered the last check', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let probes = 0
    open(
      t,
      () => {
        probes++
        return new Promise(() => {})
      },
      { checkMs: 1000 },
    )
    t.mock.timers.tick(5000)
    await setImmediate()
    assert.equal(probes, 1)
  })

  test('notices the death of an engine that has no work', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const engine = open(
      t,
      async () => {
        throw new EngineDown('refused')
      },
      { checkMs: 1000 },
    )
    for (let i = 0; i < 3; i++) {
      await setImmediate()
      t.mock.timers.tick(1000)
    }
    await setImmediate()
    assert.deepEqual([engine.external?.findHealth().breaker, engine.external?.findHealth().fault], ['open', 'refused'])
  })
})

test('verdicts have a version only for the time that the operator gives', async (t) => {
  const scan = scanWith(async () => found)
  assert.equal(open(t, scan).findState()?.verdictVersion, undefined)
  const engine = open(t, scan, { cacheMs: 86_400_000 })
  await engine.scan(content, newWork())
  assert.match(engine.findState()?.verdictVersion ?? '', /^other Other 1\.0 digest \d+$/)
})
