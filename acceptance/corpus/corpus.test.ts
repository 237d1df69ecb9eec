import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { chooseThird, forms, listLacking, makePairs } from './corpus.ts'
import { listExtracting } from './extract.ts'
import { mapParallel, scanPairs } from './scan-pairs.ts'
import { installTools } from './tools.ts'

/**
 * Scans content that real programs hid in files. About a third of the samples of each form are scanned, with
 * ASSAY_TEST_CORPUS=all every sample, which then also must be extracted by a real program if its form says so.
 */
const isReady = process.env.ASSAY_TEST_CORPUS !== undefined
const isWhole = process.env.ASSAY_TEST_CORPUS === 'all'

const service = getSharedService()
const skip = isReady ? await lacksClamAv(service.url) : 'set ASSAY_TEST_CORPUS to some or all'
if (skip === false) installTools()
let key = ''
before(async () => {
  if (skip === false) key = (await service.createAccount()).api_key
})

test('the corpus has at least 60 forms, each with a name of its own', () => {
  assert.ok(forms.length >= 60, `${forms.length} forms`)
  assert.equal(new Set(forms.map(({ name }) => name)).size, forms.length)
})

for (const form of forms) {
  const lacking = listLacking(form)
  const reason = skip || (lacking.length > 0 && `not installed: ${lacking.join(', ')}`)
  test(`${form.family}: ${form.name}: no hidden content is called clean`, { skip: reason }, async () => {
    const made = makePairs(form)
    const pairs = isWhole ? made : chooseThird(made)
    const scanned = await scanPairs(service.url, key, pairs)
    const wrong = scanned.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`))
    assert.deepEqual(wrong, [])
  })

  test(`${form.family}: ${form.name}: a program extracts the content`, { skip: reason || !isWhole }, async () => {
    const opened = makePairs(form).filter(({ expectation }) => expectation === 'opened')
    const options = { special: form.extractors, isFirstEnough: true }
    const extracting = await mapParallel(opened, 2, (pair) => listExtracting(pair, pair.payload, options))
    const unproven = opened.filter((_, n) => extracting[n]?.length === 0).map(({ name }) => name)
    assert.deepEqual(unproven, [])
  })
}
