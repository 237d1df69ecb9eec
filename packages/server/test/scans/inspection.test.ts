import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  EngineBusy,
  EngineDown,
  type EngineReport,
  EngineStarved,
  type ScanEngine,
  type SeenMembers,
  type Unpacker,
} from '../../src/domain/ports/engines.ts'
import { makeInspection } from '../../src/domain/scans/inspection.ts'
import { makeWorkClock } from '../../src/domain/scans/work-clock.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'
import { newTar } from '../engines/unpack-archives.ts'
import { box, newContent, newContents, newEngine, newUnpacker, nothing, toBytes } from './scan-support.ts'

function newInspection(engines: ScanEngine[], unpacker: Unpacker = newUnpacker()) {
  const { contents, countHeld } = newContents()
  const semaphore = makeSemaphore({ count: 1, maxWaiting: 10 })
  const time = { processorMs: [0, 0, 0], elapsedMs: 0 }
  const clock = makeWorkClock({ readProcessorMs: (pid) => time.processorMs[pid] ?? 0, now: () => time.elapsedMs })
  const inspection = makeInspection({ listEngines: () => engines, unpacker, contents, semaphore, clock })
  /** Lets seconds pass, in each of which the process uses so much processor time. Needs mocked intervals. */
  function pass(t: TestContext, seconds: number, pid = 0, processorMs = 0) {
    for (let second = 0; second < seconds; second++) {
      time.elapsedMs += 1000
      time.processorMs[pid] = (time.processorMs[pid] ?? 0) + processorMs
      t.mock.timers.tick(1000)
    }
  }
  return { ...inspection, countHeld, semaphore, time, pass }
}

/** An engine whose scan ends only when it is aborted; until then it uses the process that the content names. */
const hanging = newEngine({
  scan: (content, { signal, onUse }) =>
    new Promise((_, reject) => {
      const [pid, isShared] = content.whole?.includes('own') ? [1, false] : [2, true]
      const endUse = onUse?.(pid, isShared)
      signal.addEventListener('abort', () => {
        endUse?.()
        reject(signal.reason)
      })
    }),
})

const nested = (depth: number, innermost: string) => {
  let text = innermost
  for (let i = 0; i < depth; i++) text = box(text)
  return text
}

describe('an inspection', () => {
  test('runs every engine and combines their reports', async () => {
    const engines = [
      newEngine({ scan: async () => ({ ...nothing, findings: ['A'] }) }),
      newEngine({ scan: async () => ({ ...nothing, findings: ['B'], doubts: ['EncryptedContent'] }) }),
    ]
    assert.deepEqual(await newInspection(engines).inspect(newContent('text')), {
      findings: [
        { name: 'A', path: [] },
        { name: 'B', path: [] },
      ],
      doubts: ['EncryptedContent'],
    })
  })

  test('fails when one engine cannot answer, whatever the others found', async () => {
    const down = new EngineDown('away')
    const { inspect } = newInspection([newEngine(), newEngine({ scan: () => Promise.reject(down) })])
    await assert.rejects(inspect(newContent('a virus')), down)
  })

  test('ends the other engines when one fails, and fails only after they have stopped', async () => {
    const down = new EngineDown('away')
    const stopped = Promise.withResolvers<void>()
    const reasons: unknown[] = []
    let isOver = false
    const slow = newEngine({
      scan: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            // An engine that holds the content for a moment longer.
            void stopped.promise.then(() => reject(new Error('ended')))
          })
        }),
    })
    const { inspect } = newInspection([slow, newEngine({ scan: () => Promise.reject(down) })])
    const failing = assert.rejects(inspect(newContent('text')), down).finally(() => {
      isOver = true
    })
    await new Promise(setImmediate)
    assert.deepEqual([reasons, isOver], [[down], false])
    stopped.resolve()
    await failing
  })

  test('does not end engines that have answered', async () => {
    const signals: AbortSignal[] = []
    const engine = newEngine({
      async scan(_, { signal }) {
        signals.push(signal)
        return nothing
      },
    })
    for (const engines of [[engine], [engine, engine]]) await newInspection(engines).inspect(newContent('text'))
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false, false, false],
    )
  })

  test('beyond the processor time of a scan ends all engines', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { inspect, pass } = newInspection([hanging, hanging])
    const inspecting = inspect(newContent('text'))
    await new Promise(setImmediate)
    pass(t, 1, 2, 45_001)
    assert.deepEqual(await inspecting, { findings: [], doubts: ['ScanLimitExceeded'] })
  })

  test('unpacks for an engine that opens no containers, and every engine scans the members', async () => {
    const [opening, other] = [[] as string[], [] as string[]]
    const engines = [newEngine({ seen: opening, opensContainers: true }), newEngine({ seen: other })]
    const unpacker = newUnpacker({
      async unpack(_, { take }) {
        for (const text of ['one', 'two']) await take({ path: text, bytes: toBytes(text) })
        return []
      },
    })
    const { inspect, countHeld } = newInspection(engines, unpacker)
    // ClamAV opens tar files itself.
    const tar = newTar(['a']).toString('latin1')
    await inspect(newContent(tar))
    assert.deepEqual(other, [tar, 'one', 'two'])
    assert.deepEqual(opening, other)
    assert.equal(countHeld(), 0)
  })

  test('leaves out what its only engine has seen, and only plain text if that engine has a doubt', async () => {
    const inspectTar = async (engine: Parameters<typeof newEngine>[0], report: Partial<EngineReport> = {}) => {
      let seen: SeenMembers | undefined
      const unpacker = newUnpacker({
        async unpack(_, options) {
          seen = options.seen
          return []
        },
      })
      const engines = [newEngine({ ...engine, scan: async () => ({ ...nothing, ...report }) })]
      await newInspection(engines, unpacker).inspect(newContent(newTar(['a']).toString('latin1')))
      return seen
    }
    const clamAv = { opensContainers: true }
    assert.equal(await inspectTar(clamAv), 'skip')
    assert.equal(await inspectTar(clamAv, { suspectsContainer: true }), 'search')
    assert.equal(await inspectTar(clamAv, { doubts: ['EncryptedContent'] }), 'search')
    assert.equal(await inspectTar({ opensContainers: false }), 'give')
    assert.equal(await inspectTar({ ...clamAv, marksContainers: () => false }), 'give')
  })

  test('does not give content to the unpacker that cannot hold any, as far as its engine tells', async () => {
    const unpacker = newUnpacker({ unpack: () => Promise.reject(new Error('nothing to unpack')) })
    const { inspect } = newInspection([newEngine({ opensContainers: true })], unpacker)
    assert.deepEqual(await inspect(newContent('text')), { findings: [], doubts: [] })
    const unmarking = newEngine({ opensContainers: true, marksContainers: () => false })
    await assert.rejects(newInspection([unmarking], unpacker).inspect(newContent('text')), /nothing to unpack/)
  })

  test('unpacks containers that its engine reports as unopened, or that ClamAV is known not to open', async () => {
    const opener = newEngine({ opensContainers: true, scan: newScan() })
    const { findings } = await newInspection([opener]).inspect(newContent(box('virus')))
    assert.deepEqual(findings, [{ name: 'Virus', path: ['member-0'] }])
    const unopened = newEngine({
      opensContainers: true,
      scan: async (content) => (content.bytes > 4 ? { ...nothing, suspectsContainer: true } : nothing),
    })
    let unpacked = 0
    const unpacker = newUnpacker({
      async unpack() {
        unpacked++
        return ['UnsupportedContainer']
      },
    })
    const { doubts } = await newInspection([unopened], unpacker).inspect(newContent('no container at all'))
    assert.deepEqual([doubts, unpacked], [['UnsupportedContainer'], 1])
  })

  test('has a doubt about a container that its engine could not open, when nothing else could', async () => {
    const marking = newEngine({
      opensContainers: true,
      scan: async () => ({ ...nothing, suspectsContainer: true, hasUnopened: true }),
    })
    const unpacker = newUnpacker({ unpack: async () => [] })
    const { doubts } = await newInspection([marking], unpacker).inspect(newContent('a disk image'))
    assert.deepEqual(doubts, ['UnsupportedContainer'])
  })

  test('unpacks a container with a doubt of its engine: another doubt may hide behind it', async () => {
    const doubting = newEngine({
      opensContainers: true,
      scan: async (content) => (content.bytes > 8 ? { ...nothing, doubts: ['EncryptedContent'] } : newScan()(content)),
    })
    const unpacker = newUnpacker({
      async unpack(_, { take }) {
        await take({ path: 'a', bytes: toBytes('virus') })
        return []
      },
    })
    const tar = newTar(['a']).toString('latin1')
    assert.deepEqual(await newInspection([doubting], unpacker).inspect(newContent(tar)), {
      findings: [{ name: 'Virus', path: ['a'] }],
      doubts: ['EncryptedContent'],
    })
  })

  test('finds at any depth and gives the path', async () => {
    const { inspect, countHeld } = newInspection([newEngine({ scan: newScan() })])
    const content = newContent(box('harmless', box(box('x', 'virus'))))
    const { findings, doubts } = await inspect(content)
    assert.deepEqual(findings, [{ name: 'Virus', path: ['member-1', 'member-0', 'member-1'] }])
    assert.deepEqual([doubts, countHeld()], [[], 0])
  })

  test('locates a finding that the engine reported for the whole container', async () => {
    const { inspect, countHeld } = newInspection([newEngine({ opensContainers: true })])
    const { findings, doubts } = await inspect(newContent(box('harmless', 'a virus')))
    assert.deepEqual(findings, [
      { name: 'Virus', path: [] },
      { name: 'Virus', path: ['member-1'] },
    ])
    assert.deepEqual([doubts, countHeld()], [[], 0])
  })

  test('keeps a finding that it cannot locate', async () => {
    const unpacker = newUnpacker({ unpack: () => Promise.reject(new EngineDown('the unpacker fell')) })
    const { inspect } = newInspection([newEngine()], unpacker)
    assert.deepEqual(await inspect(newContent(box('a virus'))), { findings: [{ name: 'Virus', path: [] }], doubts: [] })
  })

  test('unpacks eight levels, and has a doubt when there are more', async () => {
    const { inspect, countHeld } = newInspection([newEngine({ scan: newScan() })])
    assert.deepEqual((await inspect(newContent(nested(8, 'virus')))).findings.length, 1)
    assert.deepEqual(await inspect(newContent(nested(9, 'virus'))), { findings: [], doubts: ['ScanLimitExceeded'] })
    assert.equal(countHeld(), 0)
  })

  test('has one budget for all depths together', async () => {
    const given: number[] = []
    const opened = newUnpacker()
    const unpacker = newUnpacker({
      unpack(content, options) {
        given.push(options.budget.members)
        return opened.unpack(content, options)
      },
    })
    const { inspect } = newInspection([newEngine({ scan: async () => nothing })], unpacker)
    await inspect(newContent(box(box('a', 'b'), box('c'))))
    assert.deepEqual(given, [50_000, 49_999, 49_996])
    const many = Array.from({ length: 50_001 }, () => 'x')
    assert.deepEqual((await inspect(newContent(box(...many)))).doubts, ['ScanLimitExceeded'])
  })

  test('scans the same content once, wherever it meets it again', async () => {
    const seen: string[] = []
    const twice = box('a text', 'a text')
    const { inspect } = newInspection([newEngine({ seen })])
    const report = await inspect(newContent(box(twice, twice, 'a text')))
    assert.deepEqual(report, { findings: [], doubts: [] })
    assert.deepEqual(seen.toSorted(), [box(twice, twice, 'a text'), twice, 'a text'].toSorted())
  })

  test('ends where a container holds itself', async () => {
    const unpacker = newUnpacker({
      async unpack(content, { take }) {
        await take({ path: 'itself', bytes: content.read() })
        return []
      },
    })
    const { inspect } = newInspection([newEngine()], unpacker)
    const report = await inspect(newContent(box('itself')))
    assert.deepEqual(report, { findings: [], doubts: [] })
  })

  test('does not scan empty members', async () => {
    const seen: string[] = []
    const { inspect, countHeld } = newInspection([newEngine({ seen })])
    await inspect(newContent(box('', 'full')))
    assert.deepEqual([seen.slice(1), countHeld()], [['full'], 0])
  })

  test('releases all members when an engine or the unpacker fails', async () => {
    const down = new EngineDown('fell')
    let scans = 0
    const falling = newEngine({
      async scan() {
        if (++scans === 3) throw down
        return nothing
      },
    })
    const first = newInspection([falling])
    await assert.rejects(first.inspect(newContent(box('a', 'b', 'c'))), down)
    assert.equal(first.countHeld(), 0)

    const unpacker = newUnpacker({
      async unpack(_, { take }) {
        await take({
          path: 'torn',
          bytes: (async function* () {
            yield Buffer.from('half')
            throw down
          })(),
        })
        return []
      },
    })
    const second = newInspection([newEngine()], unpacker)
    await assert.rejects(second.inspect(newContent(box('a'))), down)
    assert.equal(second.countHeld(), 0)
  })

  for (const [what, text, pid] of [
    ['its own process', 'own', 1],
    ['a shared process', 'text', 2],
  ] as const) {
    test(`beyond the processor time of a scan in ${what} has a doubt`, async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] })
      const { inspect, pass } = newInspection([hanging])
      const inspecting = inspect(newContent(text))
      await new Promise(setImmediate)
      pass(t, 230, pid, 195)
      await new Promise(setImmediate)
      pass(t, 1, pid, 200)
      assert.deepEqual(await inspecting, { findings: [], doubts: ['ScanLimitExceeded'] })
    })
  }

  test('without processor time for minutes is our fault, and no verdict, however much others use', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { inspect, pass } = newInspection([hanging])
    const [stopped, busy] = [inspect(newContent('own')), inspect(newContent('shared'))]
    await new Promise(setImmediate)
    pass(t, 46, 2, 1000)
    assert.deepEqual((await busy).doubts, ['ScanLimitExceeded'])
    pass(t, 195)
    await assert.rejects(stopped, EngineStarved)
  })

  test('is not blamed for a stall of our own event loop', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { inspect, time, pass } = newInspection([hanging])
    let isOver = false
    const inspecting = inspect(newContent('own')).finally(() => {
      isOver = true
    })
    await new Promise(setImmediate)
    time.elapsedMs = 3_600_000
    pass(t, 200)
    await new Promise(setImmediate)
    assert.equal(isOver, false)
    pass(t, 41)
    await assert.rejects(inspecting, EngineStarved)
  })

  test('shares the processor time of a process with the scans that use it at once', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { inspect, pass } = newInspection([hanging])
    const both = [inspect(newContent('one')), inspect(newContent('two'))]
    await new Promise(setImmediate)
    pass(t, 89, 2, 1000)
    await new Promise(setImmediate)
    pass(t, 2, 2, 1000)
    for (const { doubts } of await Promise.all(both)) assert.deepEqual(doubts, ['ScanLimitExceeded'])
  })

  test('that waits for too long fails as busy, and a background job waits on', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    const { inspect, semaphore, pass } = newInspection([newEngine()])
    const gate = Promise.withResolvers<void>()
    const working = semaphore.use(() => gate.promise)
    const job = { accountId: 'a', order: 1, stopping: new AbortController().signal }
    const waiting = inspect(newContent('job', { isInMemory: false, whole: undefined }), { job })
    const refused = assert.rejects(inspect(newContent('caller', { isInMemory: false, whole: undefined })), EngineBusy)
    pass(t, 1000)
    await refused
    gate.resolve()
    await working
    assert.deepEqual(await waiting, { findings: [], doubts: [] })
  })

  test('beyond the limit in a member keeps earlier findings', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const engine = newEngine({
      scan: (content, work) =>
        content.whole?.toString() === 'slow' ? hanging.scan(content, work) : newScan()(content),
    })
    const { inspect, countHeld, pass } = newInspection([engine])
    const inspecting = inspect(newContent(box('virus', 'slow')))
    for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    pass(t, 1, 2, 45_001)
    const { findings, doubts } = await inspecting
    assert.deepEqual([findings, doubts], [[{ name: 'Virus', path: ['member-0'] }], ['ScanLimitExceeded']])
    assert.equal(countHeld(), 0)
  })

  test('waits for the semaphore for content that is not in memory, and only then', async () => {
    const { inspect, semaphore } = newInspection([newEngine()])
    const gate = Promise.withResolvers<void>()
    const working = semaphore.use(() => gate.promise)
    const large = inspect(newContent('large', { isInMemory: false, whole: undefined }))
    await inspect(newContent('small'))
    assert.equal(semaphore.countWaiting(), 1)
    gate.resolve()
    await working
    assert.deepEqual(await large, { findings: [], doubts: [] })
  })
})

/** Finds the word alone, not within a container. */
function newScan() {
  return async (content: { whole: Buffer | undefined }) =>
    content.whole?.toString() === 'virus' ? { ...nothing, findings: ['Virus'] } : nothing
}
