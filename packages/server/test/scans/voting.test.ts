import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineDown, type EngineReport, type ScanEngine } from '../../src/domain/ports/engines.ts'
import { defaultVoteRule, type VoteRule } from '../../src/domain/scans/ballot.ts'
import { makeInspection } from '../../src/domain/scans/inspection.ts'
import { type Disagreement, makeMalwareScan } from '../../src/domain/scans/malware-scan.ts'
import { makeVersionedCache } from '../../src/domain/scans/scan.ts'
import { makeWorkClock } from '../../src/domain/scans/work-clock.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'
import { box, newContent, newContents, newEngine, newPolicy, newUnpacker, nothing, state } from './scan-support.ts'

/** A malware scan with real inspection, whose engines vote. */
function newScan(engines: ScanEngine[], policies: Record<string, string> = {}, rule: Partial<VoteRule> = {}) {
  const { contents } = newContents()
  const semaphore = makeSemaphore({ count: 1, maxWaiting: 10 })
  const clock = makeWorkClock({ readProcessorMs: () => 0, now: () => 0 })
  const disagreements: Disagreement[] = []
  const opener = newUnpacker()
  /** Like the real one, it finds nothing in content that is no container. */
  const unpacker = newUnpacker({
    unpack: async (content, options) => (content.head.includes('7z') ? opener.unpack(content, options) : []),
  })
  const malware = makeMalwareScan({
    listEngines: () => engines,
    inspection: makeInspection({ listEngines: () => engines, unpacker, contents, semaphore, clock }),
    cache: makeVersionedCache({ entries: 10 }),
    encryptedStatus: 'error',
    findDegradation: () => undefined,
    findSignaturesAt: () => undefined,
    voting: {
      async findPolicy(accountId) {
        return newPolicy(policies[accountId ?? ''] ?? 'any')
      },
      findRule: () => ({ ...defaultVoteRule, ...rule }),
      onDisagreement: (disagreement) => disagreements.push(disagreement),
    },
  })
  const assess = (text: string, accountId = 'account') =>
    malware.assess(newContent(text), { contentName: 'name.bin', accountId })
  return { assess, disagreements }
}

type Row = {
  name: string
  version: string
  verdict: string
  milliseconds: number
  findings?: string[]
  reason?: string
}
const readEngines = ({ metadata }: { metadata: Record<string, string> }) => JSON.parse(metadata.engines ?? '') as Row[]

const says = (name: string, report: Partial<EngineReport> = {}, change: Partial<ScanEngine> = {}) =>
  newEngine({ name, scan: async () => ({ ...nothing, ...report }), ...change })

test('metadata.engines has the name, version, verdict and time of every engine', async () => {
  const { assess, disagreements } = newScan([
    says('a', { findings: ['X'] }),
    says('b'),
    says('c', { failure: 'away' }),
    says('d', { isSkipped: true }),
  ])
  const verdict = await assess('text')
  assert.deepEqual([verdict.status, verdict.signals], ['threat', ['Virus:X']])
  assert.deepEqual(
    readEngines(verdict).map(({ milliseconds, ...row }) => {
      assert.equal(typeof milliseconds, 'number')
      return row
    }),
    [
      { name: 'a', version: 'Test 1.0', verdict: 'threat', findings: ['X'] },
      { name: 'b', version: 'Test 1.0', verdict: 'clean' },
      { name: 'c', version: 'Test 1.0', verdict: 'error', reason: 'away' },
      { name: 'd', version: 'Test 1.0', verdict: 'skipped' },
    ],
  )
  assert.deepEqual(
    disagreements.map(({ status }) => status),
    ['threat'],
  )
})

test('a finding below the quorum is clean by the policy of the account, and named in the metadata', async () => {
  const policies = { patient: 'quorum 2' }
  const { assess, disagreements } = newScan([says('a', { findings: ['X'] }), says('b')], policies)
  assert.equal((await assess('text', 'strict')).status, 'threat')
  const verdict = await assess('text', 'patient')
  assert.deepEqual([verdict.status, verdict.signals, verdict.metadata.outvoted], ['clean', [], 'X'])
  assert.equal(disagreements.length, 2)
})

test('a finding below the quorum does not hide a doubt', async () => {
  const engines = [says('a', { findings: ['X'] }), says('b', { doubts: ['EncryptedContent'] })]
  const verdict = await newScan(engines, { account: 'quorum 2' }).assess('text')
  assert.deepEqual([verdict.status, verdict.signals], ['error', ['Error:EncryptedContent']])
})

test('an engine that has not read everything is not listed as clean, and is asked about other content', async () => {
  const first = newEngine({
    name: 'a',
    async scan(content) {
      const text = content.whole?.toString('latin1') ?? ''
      if (text === 'virus') return { ...nothing, findings: ['X'] }
      return { ...nothing, doubts: text === 'locked' ? ['EncryptedContent'] : [] }
    },
  })
  const { assess, disagreements } = newScan([first, says('b', { findings: ['Y'] })])
  const [row] = readEngines(await assess('locked'))
  assert.deepEqual([row?.verdict, row?.reason], ['error', 'it says EncryptedContent'])
  assert.deepEqual(disagreements, [])
  const [second] = readEngines(await newScan([first, says('b')]).assess(box('locked', 'virus')))
  assert.deepEqual([second?.verdict, second?.findings], ['threat', ['X']])
})

test('a quorum that an advisory engine keeps from being reached fails the scan', async () => {
  const engines = [says('a', { findings: ['X'] }), says('b', { failure: 'away' })]
  await assert.rejects(newScan(engines, { account: 'quorum 2' }).assess('text'), (error) => {
    assert.ok(error instanceof EngineDown)
    assert.match(error.message, /Too few engines answered for the policy "quorum 2": b: away/)
    return true
  })
})

test('behind a finding that does not decide, members are scanned, where engines may agree', async () => {
  // Like clamd, the first engine opens containers and names one finding only.
  const first = newEngine({
    name: 'a',
    opensContainers: true,
    async scan(content) {
      const text = content.whole?.toString('latin1') ?? ''
      const findings = text.includes('guess') ? ['Heuristics.Guess'] : text.includes('virus') ? ['Virus'] : []
      return { ...nothing, findings }
    },
  })
  const scan = newScan([first, says('b')], {}, { heuristicWeight: 0 })
  assert.equal((await scan.assess(box('guess', 'harmless'))).status, 'clean')
  const verdict = await scan.assess(box('guess', 'virus'))
  assert.deepEqual([verdict.status, verdict.signals], ['threat', ['Virus:Heuristics.Guess', 'Virus:Virus']])
})

/** An engine that finds the word `virus` in content that its filter lets through. */
const sees = (name: string, wants: (text: string) => boolean, change: Partial<ScanEngine> = {}) =>
  newEngine({
    name,
    async scan(content) {
      const text = content.whole?.toString('latin1') ?? ''
      if (!wants(text)) return { ...nothing, isSkipped: true }
      return { ...nothing, findings: text.includes('virus') ? ['Virus'] : [] }
    },
    ...change,
  })

test('a filter does not make a finding in a member harmless, however much else its engine has seen', async () => {
  const policies = { account: 'quorum 2' }
  const all = sees('a', () => true)
  const documents = sees('b', (text) => text.startsWith('document'))
  assert.equal((await newScan([all, documents], policies).assess('virus')).status, 'threat')
  const verdict = await newScan([all, documents], policies).assess(box('document', 'virus'))
  assert.deepEqual(
    [verdict.status, readEngines(verdict).map((row) => [row.name, row.verdict])],
    [
      'threat',
      [
        ['a', 'threat'],
        ['b', 'clean'],
      ],
    ],
  )
  // Another engine that has seen the member and found nothing still counts.
  const third = says('c')
  assert.equal((await newScan([all, documents, third], policies).assess(box('document', 'virus'))).status, 'clean')
})

test('an engine that has read the whole file counts for a finding in its members', async () => {
  const reads = (name: string) =>
    newEngine({
      name,
      opensContainers: true,
      scan: async (_content, _work, place) => (place?.depth === 0 ? nothing : { ...nothing, isSkipped: true }),
    })
  const engines = [sees('a', () => true), reads('b')]
  assert.equal((await newScan(engines, { account: 'quorum 2' }).assess(box('text', 'virus'))).status, 'clean')
})

test('content that filters keep from all engines is not clean, nor is a file with such a member', async () => {
  const documents = sees('a', (text) => text.startsWith('document') || text.includes('7z'))
  const { assess } = newScan([documents, says('lists', {}, { isCertain: true })])
  assert.equal((await assess('document')).status, 'clean')
  assert.equal((await assess(box('document'))).status, 'clean')
  for (const text of ['text', box('document', 'text')]) {
    await assert.rejects(assess(text), (error) => {
      assert.ok(error instanceof EngineDown)
      assert.match(error.message, /No engine has read all of the content/)
      return true
    })
  }
  assert.equal((await assess(box('text', 'document virus'))).status, 'threat')
  assert.equal((await newScan([documents, says('b')]).assess(box('text'))).status, 'clean')
})

test('what the operator knows is a threat whatever engines vote, and is no vote itself', async () => {
  const knows = (findings: string[]) => says('lists', { findings }, { isCertain: true })
  const policies = { account: 'quorum 2' }
  const verdict = await newScan([says('a'), says('b'), knows(['Known'])], policies).assess('text')
  assert.deepEqual([verdict.status, verdict.signals], ['threat', ['Virus:Known']])
  assert.deepEqual(
    readEngines(verdict).map(({ name }) => name),
    ['a', 'b'],
  )
  await assert.rejects(
    newScan([says('a'), says('b', { failure: 'away' }), knows([])], policies).assess('text'),
    EngineDown,
  )
})

test('engines learn the name and the depth of content', async () => {
  const places: unknown[] = []
  const engine = newEngine({
    async scan(_content, _work, place) {
      places.push(place)
      return nothing
    },
  })
  await newScan([engine]).assess(box('one'))
  assert.deepEqual(places, [
    { depth: 0, name: 'name.bin' },
    { depth: 1, name: 'member-0' },
  ])
})

test('the cache keeps a verdict by policy, and none that an engine is missing from', async () => {
  let scans = 0
  let failure: string | undefined
  const engine = says(
    'a',
    {},
    {
      findState: () => state,
      async scan() {
        scans++
        return failure === undefined ? nothing : { ...nothing, failure }
      },
    },
  )
  const policies: Record<string, string> = {}
  const { assess } = newScan([engine, says('b')], policies)
  const first = await assess('text')
  const second = await assess('text')
  assert.equal(scans, 1)
  assert.equal(second.metadata.engines, first.metadata.engines)
  policies.account = 'quorum 2'
  await assess('text')
  assert.equal(scans, 2)
  failure = 'away'
  policies.account = 'any'
  for (let i = 0; i < 2; i++) await assess('other text')
  assert.equal(scans, 4)
})
