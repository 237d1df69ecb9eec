import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { images } from '../support/forms.ts'
import {
  makeApng,
  makeFlickeringGif,
  makeHugePng,
  makeManyScanJpeg,
  makeOtherFormats,
  makePng,
  makeZeroSized,
  withArchiveBehind,
} from '../support/hostile-images.ts'
import { assertProblem } from '../support/problems.ts'
import { alreadyTested, toVerdict, uploadImageTo } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()

describe('a picture that is none, or means harm', { skip: alreadyTested }, () => {
  let key = ''
  before(async () => {
    key = (await service.createAccount()).api_key
  })
  const send = (content: Buffer) => uploadImageTo(service.url, key, content)

  async function expectStatus(content: Buffer, expected: { status: string; signals: string[] }, about: string) {
    const { status, signals } = toVerdict(await send(content), about)
    assert.deepEqual({ status, signals }, expected, about)
  }
  const unsupported = { status: 'error', signals: ['Error:UnsupportedImage'] }
  const overLimit = { status: 'error', signals: ['Error:ScanLimitExceeded'] }
  const clean = { status: 'clean', signals: [] }

  test('of another format is refused, whatever it is called', async () => {
    for (const [name, content] of Object.entries(makeOtherFormats())) {
      await assertProblem(await send(content), { status: 422, kind: 'validation', errors: ['file'] }, name)
    }
  })

  test('without a pixel, or cut off before the first, is an error', async () => {
    for (const [name, content] of Object.entries(makeZeroSized())) await expectStatus(content, unsupported, name)
    await expectStatus(images['one.png'].subarray(0, 20), unsupported, 'cut off')
    await expectStatus(images['one.webp'].subarray(0, 20), unsupported, 'cut off')
  })

  test('of too many pixels, scans or frames is an error', async () => {
    await expectStatus(makeHugePng(50_000), overLimit, 'PNG of 50,000 x 50,000')
    await expectStatus(makePng({ width: 12_000, height: 12_000 }), overLimit, 'PNG bomb')
    await expectStatus(makeManyScanJpeg(2000, 2000, 2000), overLimit, 'JPEG of 2,000 scans')
    await expectStatus(makeFlickeringGif(300, 300, 10_000), overLimit, 'GIF of 10,000 frames')
  })

  test('at the limit of pixels is still looked at', async () => {
    await expectStatus(makePng({ width: 7000, height: 7000, interlaced: true }), clean, 'interlaced PNG')
  })

  test('that is an archive as well is looked at as the picture it is', async () => {
    for (const [name, content] of Object.entries(images)) await expectStatus(withArchiveBehind(content), clean, name)
  })

  test('that moves although it is a PNG has all its frames looked at', async () => {
    const [width, height] = [64, 64]
    const plain = (value: number) => ({ width, height, pixels: Buffer.alloc(width * height * 4, value) })
    const apng = makeApng({ width, height }, [plain(255), plain(0), plain(128)])
    const { status, metadata } = toVerdict(await send(apng))
    assert.equal(status, 'clean')
    assert.ok(Number(metadata.frames_scanned) > 1)
  })

  test('leaves the service as it was', async () => {
    await expectStatus(images['one.jpeg'], clean, 'the next picture')
  })
})
