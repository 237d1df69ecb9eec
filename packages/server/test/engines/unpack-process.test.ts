import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cachedDataVersionTag } from 'node:v8'
import { EngineBusy, EngineDown } from '../../src/domain/ports/engines.ts'
import { chooseConfinement } from '../../src/engines/nsfw/confinement.ts'
import { openUnpacker, toUnpackerLaunch } from '../../src/engines/unpack/open-unpacker.ts'
import { toYaraLaunch } from '../../src/engines/yara/load-rules.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import { member, newBudget, newContent, newRar4, newRar5, newTar, unpackAll } from './unpack-archives.ts'

const log = makeLogger({ level: 'silent', region: 'test' })
const escapes: string[] = []
/** Unpacker of all tests that do not close it: a single process, which counts as hung after three seconds. */
const own = openUnpacker({ log, maxProcesses: 1, stallMs: 3000, onEscape: (parser) => escapes.push(parser) })
after(() => own.close())

describe('an unpacking process', () => {
  test('killed while idle is replaced, and every member is given', async () => {
    await unpackAll(own, newRar5())
    const [pid] = own.processIds()
    process.kill(pid ?? 0, 'SIGKILL')
    const { given, doubts } = await unpackAll(own, newRar5())
    assert.deepEqual(doubts, [])
    assert.ok(given[0]?.bytes.equals(member))
    assert.notDeepEqual(own.processIds(), [pid])
  })

  const tar = () => newContent(newTar(['a', 'b'], Buffer.alloc(5_000_000, 'x')))
  const untilEnd = async ({ bytes }: { bytes: AsyncIterable<Buffer> }) => {
    for await (const _ of bytes);
  }

  for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
    test(`that gets ${signal} at work is replaced, and every member is given whole within the budget`, async () => {
      const whole: string[] = []
      let struck: number | undefined
      const budget = { members: 3, bytes: 11_000_000 }
      const doubts = await own.unpack(tar(), {
        budget,
        work: { signal: AbortSignal.timeout(60_000) },
        async take({ path, bytes }) {
          for await (const _ of bytes) {
            if (struck === undefined && path === 'b') {
              struck = own.processIds()[0] ?? 0
              process.kill(struck, signal)
            }
          }
          whole.push(path)
        },
      })
      assert.deepEqual([doubts, whole], [[], ['a', 'a', 'b']])
      assert.deepEqual(budget, { members: 1, bytes: 1_000_000 })
      assert.ok(!own.processIds().includes(struck ?? 0))
    })

    test(`that gets ${signal} at work twice is our fault, and leaves neither a doubt nor an empty result`, async () => {
      const struck = new Set<number>()
      const work = { signal: AbortSignal.timeout(60_000) }
      const unpacking = own.unpack(tar(), {
        budget: newBudget(),
        work,
        async take(member) {
          for (const pid of own.processIds()) process.kill(pid, signal)
          for (const pid of own.processIds()) struck.add(pid)
          await untilEnd(member)
        },
      })
      await assert.rejects(unpacking, (error) => error instanceof EngineDown && !(error instanceof EngineBusy))
      assert.equal(struck.size, 2)
      assert.deepEqual(await own.unpack(tar(), { budget: newBudget(), work, take: untilEnd }), [])
    })
  }

  test('killed by the filter of its jail is tried again, and leaves no verdict the second time', async () => {
    const archive = newContent(newRar5(), { spooled: true })
    let reads = 0
    const kill = (pid = 0) => process.kill(pid, 'SIGSYS')
    const deadly = {
      ...archive,
      async *read(from?: number, to?: number) {
        reads++
        kill(own.processIds()[0])
        yield* archive.read(from, to)
      },
    }
    const options = { budget: newBudget(), work: { signal: AbortSignal.timeout(60_000) }, take: async () => {} }
    await assert.rejects(own.unpack(deadly, options), EngineDown)
    assert.equal(reads, 2)
    assert.deepEqual(escapes, ['unpacker', 'unpacker'])
    assert.deepEqual((await unpackAll(own, newRar5())).doubts, [])
  })

  test('killed because the service ends leaves no verdict', async () => {
    const own = openUnpacker({ log, maxProcesses: 1 })
    const options = { budget: newBudget(), work: { signal: AbortSignal.timeout(60_000) } }
    const tar = newContent(newTar(['a', 'b'], Buffer.alloc(5_000_000, 'x')))
    let waiting: Promise<unknown> | undefined
    const working = own.unpack(tar, {
      ...options,
      async take({ bytes }) {
        waiting ??= assert.rejects(own.unpack(tar, { ...options, take: async () => {} }), EngineDown)
        await own.close()
        for await (const _ of bytes);
      },
    })
    await assert.rejects(working, EngineDown)
    await waiting
    assert.deepEqual(own.processIds(), [])
  })

  test('runs as an ordinary user, without the environment of the service', {
    skip: process.platform !== 'linux',
  }, async () => {
    await unpackAll(own, newRar5())
    const [pid] = own.processIds()
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    if (process.getuid?.() === 0) {
      assert.doesNotMatch(status, /^Uid:\s+0/m)
    } else {
      assert.match(readFileSync(`/proc/${pid}/environ`, 'utf8'), /^PATH=[^\0]*\0$/)
    }
  })
})

describe('a caller of the unpacker', () => {
  test('may leave members unread', async () => {
    const paths: string[] = []
    const doubts = await own.unpack(newContent(newTar(['a', 'b', 'c'], Buffer.alloc(2_000_000))), {
      budget: newBudget(),
      work: { signal: AbortSignal.timeout(60_000) },
      async take({ path, bytes }) {
        paths.push(path)
        if (path === 'b') for await (const _ of bytes) break
      },
    })
    assert.deepEqual([doubts, paths], [[], ['a', 'b', 'c']])
  })

  test('that fails ends the job with its own error', async () => {
    const failure = new Error('engine down')
    const options = {
      budget: newBudget(),
      work: { signal: AbortSignal.timeout(60_000) },
      take: () => Promise.reject(failure),
    }
    await assert.rejects(own.unpack(newContent(newTar(['a', 'b'])), options), failure)
    assert.deepEqual((await unpackAll(own, newRar5())).doubts, [])
  })

  test('whose content cannot be read gets that error', async () => {
    const failure = new Error('spool gone')
    const content = {
      ...newContent(newRar5(), { spooled: true }),
      read: () => {
        throw failure
      },
    }
    const options = { budget: newBudget(), work: { signal: AbortSignal.timeout(60_000) }, take: async () => {} }
    await assert.rejects(own.unpack(content, options), failure)
  })

  test('is not taken for a process that hangs while it inspects a member', async () => {
    let members = 0
    const doubts = await own.unpack(newContent(newTar(['a', 'b'], Buffer.alloc(5_000_000, 'x'))), {
      budget: newBudget(),
      work: { signal: AbortSignal.timeout(60_000) },
      async take() {
        members++
        await pause(2000)
      },
    })
    assert.deepEqual([doubts, members], [[], 2])
  })

  test('that gives up gets its own reason at work, and EngineBusy in the queue', async () => {
    const working = new AbortController()
    const waiting = new AbortController()
    const atWork = new Error('at work')
    const tar = newContent(newTar(['a', 'b'], Buffer.alloc(2_000_000)))
    const first = own.unpack(tar, {
      budget: newBudget(),
      work: working,
      async take({ bytes }) {
        const second = own.unpack(tar, { budget: newBudget(), work: waiting, take: async () => {} })
        waiting.abort()
        await assert.rejects(second, EngineBusy)
        working.abort(atWork)
        for await (const _ of bytes);
      },
    })
    await assert.rejects(first, atWork)
    assert.deepEqual((await unpackAll(own, newRar5())).doubts, [])
  })

  test('may unpack a member while it is given, at any depth and with one process at once', async () => {
    const budget = newBudget()
    const nested = [1, 2, 3, 4].reduce((inner, depth) => newTar([`depth-${depth}`], inner), newRar5())
    const paths: string[] = []
    const open = async (bytes: Buffer): Promise<void> => {
      const doubts = await own.unpack(newContent(bytes), {
        budget,
        work: { signal: AbortSignal.timeout(60_000) },
        async take(one) {
          paths.push(one.path)
          const pieces: Buffer[] = []
          for await (const piece of one.bytes) pieces.push(piece)
          if (one.path !== 'eicar.com') await open(Buffer.concat(pieces))
        },
      })
      assert.deepEqual(doubts, [])
    }
    await Promise.all([open(nested), unpackAll(own, newRar4())])
    assert.deepEqual(paths, ['depth-4', 'depth-3', 'depth-2', 'depth-1', 'eicar.com'])
    assert.equal(budget.members, newBudget().members - 5)
  })

  test('waits for a process and gets it', async () => {
    const own = openUnpacker({ log, maxProcesses: 2 })
    const all = await Promise.all(Array.from({ length: 12 }, () => unpackAll(own, newRar4())))
    assert.ok(all.every(({ given, doubts }) => doubts.length === 0 && given[0]?.bytes.equals(member)))
    assert.equal(own.processIds().length, 2)
    await own.close()
    assert.deepEqual(own.processIds(), [])
  })
})

describe('the command line of a child leaves Node its own modules compiled', () => {
  const toProgram = (engine: string) =>
    fileURLToPath(new URL(`../../src/engines/${engine}/child/main.ts`, import.meta.url))
  const launches = {
    images: () => chooseConfinement({ program: toProgram('nsfw'), modelDirs: [], maxDataMb: 2048 }).wrap(),
    unpacker: () => toUnpackerLaunch(toProgram('unpack')),
    yara: () => toYaraLaunch(toProgram('yara'), undefined),
  }
  for (const [name, toLaunch] of Object.entries(launches)) {
    test(name, () => {
      const jail = JSON.parse(toLaunch().args.at(-1) ?? '')
      const [node, ...flags]: string[] = jail.command.slice(0, -1)
      // Code that V8 compiled is of use to a process with the same tag only.
      const tag = execFileSync(node ?? '', [...flags, '-p', 'v8.cachedDataVersionTag()'], { encoding: 'utf8' })
      assert.equal(Number(tag), cachedDataVersionTag())
    })
  }
})
