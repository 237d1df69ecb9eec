import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { headers } from '@assay/contract'
import { images } from '../support/forms.ts'
import { sendTo } from '../support/http.ts'
import { assertProblem } from '../support/problems.ts'
import { runProgram } from '../support/run-program.ts'
import { readReadiness, readSpent, toVerdict, uploadImageTo, type Verdict } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const readPicture = (name: string) => readFileSync(new URL(`../support/pictures/${name}`, import.meta.url))
const cardPath = (label: string) => fileURLToPath(new URL(`../../docs/test-images/${label}.png`, import.meta.url))
const readCard = (label: string) => readFileSync(cardPath(label))

describe('the verdict on a picture', () => {
  let key = ''
  before(async () => {
    key = (await service.createAccount()).api_key
  })
  const scan = async (content: Buffer, about = '') => toVerdict(await uploadImageTo(service.url, key, content), about)

  test('is clean for a neutral one of each format, with scores that sum to 1 and the type of the content', async () => {
    for (const [name, content] of Object.entries(images)) {
      const verdict = await scan(content, name)
      assert.equal(verdict.status, 'clean', name)
      assert.equal(verdict.scan_type, 'nsfw_image')
      assert.equal(verdict.content_type, `image/${name.split('.')[1]}`)
      assert.equal(sumScores(verdict), 1, name)
      assert.match(verdict.metadata.engine_versions ?? '', /^nsfwjs /)
      assert.match(verdict.metadata.hash_sha256 ?? '', /^[0-9a-f]{64}$/)
      assert.equal(verdict.metadata.frames_scanned, undefined)
    }
  })

  test('is a threat for what the models take for one', async () => {
    const verdict = await scan(readPicture('colours.jpg'))
    assert.equal(verdict.status, 'threat')
    assert.deepEqual(verdict.signals, ['Classification:pornography'])
    assert.ok(Number(verdict.metadata.classification_pornography) > 0.7, JSON.stringify(verdict.metadata))
  })

  test('of an animation is that of its worst frame, one in a hundred', async () => {
    for (const name of ['one-in-a-hundred.gif', 'one-in-a-hundred.webp']) {
      const { status, signals, metadata } = await scan(readPicture(name), name)
      assert.deepEqual([status, signals], ['threat', ['Classification:pornography']], name)
      assert.equal(metadata.frame_index, '57', name)
      assert.equal(metadata.frames_total, '100', name)
      assert.ok(Number(metadata.frames_scanned) > 1, name)
    }
  })

  test('can be fetched afterwards, as a picture and not as malware', async () => {
    const verdict = await scan(images['one.png'])
    const fetchResult = (path: string) =>
      sendTo(service.url, { method: 'GET', path, headers: { [headers.apiKey]: key } })
    assert.deepEqual(JSON.parse((await fetchResult(`/v1/nsfw/images/${verdict.id}`)).text), verdict)
    await assertProblem(await fetchResult(`/v1/malware/${verdict.id}`), {
      status: 422,
      kind: 'validation',
      errors: ['id'],
    })
  })

  test('costs one credit', async () => {
    const { api_key } = await service.createAccount()
    toVerdict(await uploadImageTo(service.url, api_key, images['one.png']))
    assert.equal(await readSpent({ url: service.url, apiKey: api_key }), 1)
  })
})

describe('the test images', () => {
  test('get the verdict they stand for', async () => {
    const { api_key } = await service.createAccount()
    for (const label of ['pornography', 'sexy']) {
      const verdict = toVerdict(await uploadImageTo(service.url, api_key, readCard(label)))
      assert.equal(verdict.status, 'threat')
      assert.deepEqual(verdict.signals, [`Classification:${label}`])
      assert.ok(Number(verdict.metadata[`classification_${label}`]) > 0.9)
    }
  })

  test('that is sexy is clean for an account that does not mind, from the next request on', async () => {
    const { id, api_key } = await service.createAccount('--sexy', 'clean')
    const readStatus = async (label: string) =>
      toVerdict(await uploadImageTo(service.url, api_key, readCard(label))).status
    assert.deepEqual([await readStatus('sexy'), await readStatus('pornography')], ['clean', 'threat'])
    const changed = (await service.operate('accounts', 'update', id, '--sexy', 'threat')) as { sexy: string }
    assert.equal(changed.sexy, 'threat')
    assert.equal(await readStatus('sexy'), 'threat')
  })

  test('go through assay scan --nsfw as well', async () => {
    const { code, out } = await runProgram(service.settings, 'scan', '--nsfw', cardPath('sexy'), '--json')
    assert.deepEqual([code, JSON.parse(out).signals], [1, ['Classification:sexy']])
  })
})

test('/readyz lists the models that look at pictures', async () => {
  const { engines, reasons } = await readReadiness(service.url)
  assert.ok(
    engines.some(({ name, version }) => name === 'NSFW' && version?.startsWith('nsfwjs ')),
    reasons.join(' '),
  )
})

/** As they are written: in ten-thousandths, so that nothing is lost in adding. */
const sumScores = ({ metadata }: Verdict) =>
  ['clean', 'pornography', 'sexy'].reduce(
    (sum, label) => sum + Math.round(Number(metadata[`classification_${label}`]) * 10_000),
    0,
  ) / 10_000
