import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { describe, test } from 'node:test'
import { EngineDown, type EngineReport, type JobTurn } from '../../src/domain/ports/engines.ts'
import { makeClamAvEngine, threadCount, toReport } from '../../src/engines/clamav/clamav-engine.ts'
import type { ClamdClient } from '../../src/engines/clamav/client.ts'
import { newContent, newTar } from '../engines/unpack-archives.ts'
import { noAbort } from '../engines/yara-support.ts'

const content = newContent(Buffer.from('content'))
const clean: EngineReport = { findings: [], doubts: [], suspectsContainer: false }
const down = new EngineDown('clamd crashed')

/** A client that gives these replies in turn, and throws those that are errors. */
function newClient(scans: (string | Error)[], pings: (string | Error)[] = []) {
  const asked = { scans: 0, pings: 0 }
  const next = (answers: (string | Error)[], what: string) => {
    const said = answers.shift() ?? new Error(`No further ${what} was expected`)
    if (said instanceof Error) throw said
    return said
  }
  const client: Pick<ClamdClient, 'scan' | 'sendCommand' | 'close'> = {
    async scan() {
      asked.scans++
      return next(scans, 'scan')
    },
    async sendCommand() {
      asked.pings++
      return next(pings, 'ping')
    },
    close() {},
  }
  const retried: EngineDown[] = []
  const engine = makeClamAvEngine({
    client,
    findState: () => undefined,
    marksContainers: () => true,
    onRetry: (error) => retried.push(error),
  })
  return { engine, asked, retried }
}

describe('the ClamAV engine', () => {
  test('tries a scan once more, when clamd answers again and not before', async () => {
    const { engine, asked, retried } = newClient([down, 'stream: OK'], [down, 'something', new Error('x'), 'PONG'])
    assert.deepEqual(await engine.scan(content, noAbort), clean)
    assert.deepEqual([asked, retried], [{ scans: 2, pings: 4 }, [down]])
  })

  test('tries no third time, and the second failure is that of the scan', async () => {
    const second = new EngineDown('fell again')
    const { engine, asked } = newClient([down, second, 'stream: OK'], ['PONG', 'PONG'])
    await assert.rejects(engine.scan(content, noAbort), second)
    assert.deepEqual(asked, { scans: 2, pings: 1 })
  })

  test('takes an answer that is none for a failure, and never for clean', async () => {
    const { engine, asked } = newClient(['stream: Out of memory ERROR', '', 'stream: OK'], ['PONG'])
    await assert.rejects(engine.scan(content, noAbort), EngineDown)
    assert.equal(asked.scans, 2)
  })

  test('does not try again what is not clamd’s fault', async () => {
    const failure = new Error('the store is away')
    const { engine, asked, retried } = newClient([failure])
    await assert.rejects(engine.scan(content, noAbort), failure)
    assert.deepEqual([asked, retried], [{ scans: 1, pings: 0 }, []])
  })

  test('does not try again for a caller who has left', async () => {
    const leaving = new AbortController()
    const { engine, asked } = newClient([down, 'stream: OK'], ['PONG'])
    leaving.abort()
    await assert.rejects(engine.scan(content, leaving))
    assert.deepEqual(asked, { scans: 1, pings: 0 })
  })

  test('lets a caller go while it waits for clamd to come back', async () => {
    const leaving = new AbortController()
    let pings = 0
    const client: Pick<ClamdClient, 'scan' | 'sendCommand' | 'close'> = {
      scan: () => Promise.reject(down),
      async sendCommand() {
        if (++pings === 2) leaving.abort()
        throw down
      },
      close() {},
    }
    const engine = makeClamAvEngine({ client, findState: () => undefined, marksContainers: () => true, onRetry() {} })
    await assert.rejects(engine.scan(content, leaving), { name: 'AbortError' })
    assert.equal(pings, 2)
  })

  /** An engine whose scans take until `finish`, and the scans that have begun. */
  function openBusyEngine() {
    const running: string[] = []
    const answers: (() => void)[] = []
    const client: Pick<ClamdClient, 'scan' | 'sendCommand' | 'close'> = {
      scan(_content, { accountId = '', job }) {
        running.push(job === undefined ? accountId : `job of ${job.accountId}`)
        return new Promise((resolve) => answers.push(() => resolve('stream: OK')))
      },
      sendCommand: () => Promise.reject(down),
      close() {},
    }
    const engine = makeClamAvEngine({ client, findState: () => undefined, marksContainers: () => true, onRetry() {} })
    const scan = (accountId: string, bytes: Buffer, job?: JobTurn) =>
      engine.scan(newContent(bytes), { signal: noAbort.signal, accountId, ...(job && { job }) })
    const finish = async () => {
      for (let turn = 0; answers.length > 0 && turn < 1000; turn++) {
        answers.shift()?.()
        await new Promise(setImmediate)
      }
    }
    return { running, scan, finish }
  }
  const archive = newTar(['a'])

  test('leaves threads of clamd to small content and to other accounts, whatever one account sends', async () => {
    const { running, scan, finish } = openBusyEngine()
    const scans = Array.from({ length: 3 * threadCount }, () => scan('greedy', archive))
    scans.push(scan('other', archive), scan('other', Buffer.from('small')), scan('greedy', Buffer.from('small')))
    await new Promise(setImmediate)
    const ofGreedy = running.filter((accountId) => accountId === 'greedy').length
    assert.equal(running.length - ofGreedy, 2, 'the other account waits for nothing')
    assert.ok(running.length < threadCount, `${running.length} scans of ${threadCount} threads`)
    await finish()
    assert.deepEqual(await Promise.all(scans), Array(scans.length).fill(clean))
  })

  test('leaves a processor to accounts that have sent anything of late', async () => {
    const { running, scan, finish } = openBusyEngine()
    const scans = [scan('other', Buffer.from('small'))]
    for (let i = 0; i < 3 * threadCount; i++) scans.push(scan('greedy', archive))
    await new Promise(setImmediate)
    const ofGreedy = running.filter((accountId) => accountId === 'greedy').length
    assert.equal(ofGreedy, Math.max(1, availableParallelism() - 1))
    await finish()
    assert.deepEqual(await Promise.all(scans), Array(scans.length).fill(clean))
  })

  test('leaves threads of clamd to callers of the same account and of others, however many jobs there are', async () => {
    const { running, scan, finish } = openBusyEngine()
    const { signal: stopping } = noAbort
    const scans = Array.from({ length: 3 * threadCount }, (_, order) =>
      scan('greedy', archive, { accountId: 'greedy', order, stopping }),
    )
    scans.push(scan('greedy', archive), scan('other', archive))
    await new Promise(setImmediate)
    assert.deepEqual(
      running.filter((name) => name !== 'job of greedy'),
      ['greedy', 'other'],
    )
    await finish()
    assert.deepEqual(await Promise.all(scans), Array(scans.length).fill(clean))
  })

  test('gives up on a clamd that does not come back', async (t) => {
    let pings = 0
    t.mock.method(performance, 'now', () => pings * 4000)
    const client: Pick<ClamdClient, 'scan' | 'sendCommand' | 'close'> = {
      scan: () => Promise.reject(down),
      async sendCommand() {
        pings++
        throw down
      },
      close() {},
    }
    const engine = makeClamAvEngine({ client, findState: () => undefined, marksContainers: () => true, onRetry() {} })
    await assert.rejects(
      engine.scan(content, noAbort),
      (error) => error instanceof EngineDown && /did not answer again/.test(error.message),
    )
    assert.equal(pings, 3)
  })
})

describe('a reply of clamd', () => {
  test('is clean only as the exact words `stream: OK`', () => {
    assert.deepEqual(toReport('stream: OK'), clean)
  })

  const found: Record<string, Partial<EngineReport>> = {
    'stream: Eicar-Test-Signature FOUND': { findings: ['Eicar-Test-Signature'] },
    'stream: Win.Test.EICAR_HDB-1.UNOFFICIAL FOUND': { findings: ['Win.Test.EICAR_HDB-1'] },
    'stream: YARA.assay_webshell.UNOFFICIAL FOUND': { findings: ['assay_webshell'] },
    'stream: My.UNOFFICIAL.Name FOUND': { findings: ['My.UNOFFICIAL.Name'] },
    'stream: Not.YARA.Rule FOUND': { findings: ['Not.YARA.Rule'] },
    'stream: A name FOUND in words FOUND': { findings: ['A name FOUND in words'] },
    'stream: OK FOUND': { findings: ['OK'] },
    'stream: Heuristics.Phishing.Email.SpoofedDomain FOUND': { findings: ['Heuristics.Phishing.Email.SpoofedDomain'] },
    'stream: Heuristics.Encrypted.Zip FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Encrypted.PDF FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Assay.Encrypted.Office.UNOFFICIAL FOUND': { doubts: ['EncryptedContent'] },
    'stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND': { doubts: ['ScanLimitExceeded'] },
    'stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND': { doubts: ['ScanLimitExceeded'] },
    'stream: Heuristics.Assay.Container.Zstd.UNOFFICIAL FOUND': { suspectsContainer: true, hasUnopened: true },
    'stream: Heuristics.Assay.Search.Embedded.UNOFFICIAL FOUND': { suspectsContainer: true },
    'INSTREAM size limit exceeded. ERROR': { doubts: ['ScanLimitExceeded'] },
  }
  test('gives findings, doubts and containers that were not opened', () => {
    for (const [reply, report] of Object.entries(found))
      assert.deepEqual(toReport(reply), { ...clean, ...report }, reply)
  })

  const unknown = [
    '',
    ' ',
    '\0',
    'OK',
    'stream:OK',
    'stream: ok',
    'stream: OK ',
    ' stream: OK',
    'stream: OK\n',
    'stream: OK\0stream: OK',
    'stream: OK\nstream: OK',
    '1: stream: OK',
    'other: OK',
    'stream: ',
    'stream: FOUND',
    'stream:  FOUND',
    'stream: Can not open file ERROR',
    "stream: Can't allocate memory ERROR",
    'stream: Time limit reached ERROR',
    'UNKNOWN COMMAND',
    'COMMAND READ TIMED OUT',
    'PONG',
    '\u{fffd}\u{fffd}',
    'Eicar FOUND',
  ]
  test('that is unknown or empty means that the engine is down', () => {
    for (const reply of unknown) assert.throws(() => toReport(reply), EngineDown, JSON.stringify(reply))
  })
})
