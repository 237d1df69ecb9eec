import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { images } from '../support/forms.ts'
import { makePng } from '../support/hostile-images.ts'
import { openBefore } from '../support/open-before.ts'
import { assertProblem } from '../support/problems.ts'
import { findChildren, readWork } from '../support/processes.ts'
import { alreadyTested, readReadiness, readSpent, toVerdict, uploadImageTo } from '../support/scanning.ts'
import { startService } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const childProgram = 'nsfw/child/main.ts'
/** Takes a while: an interlaced PNG is decoded whole. */
const slow = makePng({ width: 6500, height: 6500, interlaced: true })

describe('the processes that look at pictures', { skip: alreadyTested }, () => {
  const service = openBefore(() => startService({ ASSAY_VERDICT_CACHE: '0', ASSAY_NSFW_PROCESSES: '1' }))
  const send = (content: Buffer) => uploadImageTo(service.url, service.apiKey, content)
  const listPids = () => findChildren(service.pid, childProgram)

  async function whileAtWork(act: (pid: number) => void) {
    const [pid = 0] = listPids()
    const before = readWork(pid)
    const answer = send(slow)
    await waitUntil('the process to be at work', () => readWork(pid) > before + 10)
    act(pid)
    return answer
  }

  test('killed in the middle: the picture is tried again in another', async () => {
    const [before] = listPids()
    assert.equal(toVerdict(await whileAtWork((pid) => process.kill(pid, 'SIGKILL'))).status, 'clean')
    assert.notEqual(listPids()[0], before)
  })

  test('stopped in the middle: the picture is an error, and the next one is looked at', async () => {
    const { status, signals } = toVerdict(await whileAtWork((pid) => process.kill(pid, 'SIGSTOP')))
    assert.deepEqual([status, signals], ['error', ['Error:ScanLimitExceeded']])
    assert.equal(toVerdict(await send(images['one.png'])).status, 'clean')
  })

  test('with more pictures than may wait: 503 that says when to come again, uncharged, and the service answers on', async () => {
    const spentBefore = await readSpent(service)
    const answers = await Promise.all([
      ...Array.from({ length: 260 }, () => send(slow.subarray(0, 300_000))),
      fetch(`${service.url}/livez`).then(({ status }) => assert.equal(status, 200)),
    ])
    const refused = answers.filter((answer) => answer?.status === 503)
    const scanned = answers.filter((answer) => answer?.status === 201)
    assert.ok(refused.length >= 50, `${refused.length} were refused`)
    assert.equal(refused.length + scanned.length, 260)
    for (const answer of refused.slice(0, 3)) {
      assert.ok(answer)
      await assertProblem(answer, { status: 503, kind: 'overloaded' })
      assert.match(String(answer.headers[headers.retryAfter.toLowerCase()]), /^\d+$/)
    }
    assert.equal((await readSpent(service)) - spentBefore, scanned.length)
  })

  test('end with the service, however it ends', async () => {
    const doomed = await startService({})
    const pids = findChildren(doomed.pid, childProgram)
    assert.ok(pids.length > 0)
    await doomed.stop('SIGKILL')
    await waitUntil('its processes to end', () => findChildren(doomed.pid, childProgram).length === 0)
    // The database that a killed service leaves is stopped by the next one.
    await (await startService({ ASSAY_DATA_DIR: doomed.dataDir })).stop()
  })
})

test('without image scanning the rest is ready, and pictures are refused uncharged', {
  skip: alreadyTested,
}, async () => {
  const service = await startService({ ASSAY_NSFW_PROFILE: 'off' })
  try {
    assert.deepEqual(findChildren(service.pid, childProgram), [])
    const { engines } = await readReadiness(service.url)
    assert.ok(!engines.some(({ name }) => name === 'NSFW'))
    const answer = await uploadImageTo(service.url, service.apiKey, images['one.png'])
    await assertProblem(answer, { status: 500, kind: 'engine-unavailable' })
    assert.equal(await readSpent(service), 0)
  } finally {
    await service.stop()
  }
})
