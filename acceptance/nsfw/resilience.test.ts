import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { images } from '../support/forms.ts'
import { makePng } from '../support/hostile-images.ts'
import type { Answer } from '../support/http.ts'
import { openBefore } from '../support/open-before.ts'
import { assertProblem } from '../support/problems.ts'
import { findChildren, isRunning, readWork } from '../support/processes.ts'
import { alreadyTested, readReadiness, readSpent, toVerdict, uploadImageTo } from '../support/scanning.ts'
import { startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const childProgram = 'nsfw/child/main.ts'
/** Takes a while: an interlaced PNG is decoded whole. */
const slow = makePng({ width: 4000, height: 4000, interlaced: true })

describe('the processes that look at pictures', { skip: alreadyTested }, () => {
  // The profile with one model is enough: these tests are about processes, whatever they compute.
  const settings = { ASSAY_VERDICT_CACHE: '0', ASSAY_NSFW_PROCESSES: '1', ASSAY_NSFW_PROFILE: 'fast' }
  const service = openBefore(() => startService(settings, 'kept', { under: ['setsid'] }))
  const send = (content: Buffer) => uploadImageTo(service.url, service.apiKey, content)
  const listPids = () => findChildren(service.pid, childProgram)

  /** Waits for the process: the service starts another one when one has ended, and a signal to 0 reaches this process. */
  async function findPid(): Promise<number> {
    await waitUntil('a process for pictures', () => listPids().length > 0)
    return listPids()[0] as number
  }

  async function whileAtWork(act: (pid: number) => void) {
    const pid = await findPid()
    const before = readWork(pid)
    const answer = send(slow)
    await waitUntil('the process to be at work', () => readWork(pid) > before + 5)
    act(pid)
    return answer
  }

  test('killed in the middle: the picture is tried again in another', async () => {
    const [before] = listPids()
    // The signal with which the filter of the jail kills, so this is an attempt to escape.
    assert.equal(toVerdict(await whileAtWork((pid) => process.kill(pid, 'SIGSYS'))).status, 'clean')
    assert.notEqual(listPids()[0], before)
    const isEscape = (line: string) => /"level":"error".*"parser":"images".*forbidden system call/.test(line)
    await waitUntil('the log to tell', () => service.log().split('\n').filter(isEscape).length === 1)
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    assert.match(metrics, /^assay_sandbox_escape_attempts_total\{parser="images",.*\} 1$/m)
  })

  test('with more pictures than may wait: 503 that says when to come again, uncharged, and the service answers on', async () => {
    const spentBefore = await readSpent(service)
    const refused: Answer[] = []
    // A picture that breaks off before its first pixel waits like any other, and takes no time of the models.
    const brokenOff = images['one.png'].subarray(0, 20)
    const sendSmall = async () => {
      const answer = await send(brokenOff)
      if (answer.status === 503) refused.push(answer)
      return answer
    }
    // A process that is stopped takes no picture from the queue, until the service gives it up and starts another.
    const pid = await findPid()
    process.kill(pid, 'SIGSTOP')
    const sent = Promise.all(Array.from({ length: 260 }, sendSmall))
    await waitUntil('pictures to be refused', () => refused.length >= 50, 60_000)
    assert.equal((await fetch(`${service.url}/livez`)).status, 200)
    if (listPids().includes(pid)) process.kill(pid, 'SIGCONT')
    const scanned = (await sent).filter(({ status }) => status === 201)
    assert.equal(refused.length + scanned.length, 260)
    for (const answer of refused.slice(0, 3)) {
      await assertProblem(answer, { status: 503, kind: 'overloaded' })
      assert.match(String(answer.headers[headers.retryAfter.toLowerCase()]), /^\d+$/)
    }
    assert.equal((await readSpent(service)) - spentBefore, scanned.length)
  })

  test('finish their work when Ctrl-C at a terminal signals all processes of the service', async () => {
    const logged = service.log().length
    // The terminal signals the process group. `setsid` has made one for the service.
    const answer = await whileAtWork(() => process.kill(-service.pid, 'SIGINT'))
    assert.equal(toVerdict(answer).status, 'clean')
    await waitUntil('the service to end', () => !isRunning(service.pid))
    assert.doesNotMatch(service.log().slice(logged), /"level":"(warn|error|fatal)"/)
  })
})

describe('an installation whose service is killed and starts again without image scanning', {
  skip: alreadyTested,
}, () => {
  const apiKey = 'image-processes-test-key'
  const doomed = openBefore(() => startService({ ASSAY_NSFW_PROFILE: 'fast', ASSAY_BOOTSTRAP_KEY: apiKey }))

  test('the processes that look at pictures end with the service, however it ends', async () => {
    const pids = findChildren(doomed.pid, childProgram)
    assert.ok(pids.length > 0)
    await doomed.stop('SIGKILL')
    await waitUntil('its processes to end', () => !pids.some(isRunning))
  })

  test('without image scanning the rest is ready, and pictures are refused uncharged', async () => {
    // Starting the service also stops the database that the killed one left.
    const service = await startService({ ...withoutImages, ASSAY_DATA_DIR: doomed.dataDir })
    try {
      assert.deepEqual(findChildren(service.pid, childProgram), [])
      const { engines } = await readReadiness(service.url)
      assert.ok(!engines.some(({ name }) => name === 'NSFW'))
      const answer = await uploadImageTo(service.url, apiKey, images['one.png'])
      await assertProblem(answer, { status: 500, kind: 'engine-unavailable' })
      assert.equal(await readSpent({ url: service.url, apiKey }), 0)
    } finally {
      await service.stop()
    }
  })
})
