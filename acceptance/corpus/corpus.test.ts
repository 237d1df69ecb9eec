import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { forms, listLacking, makePairs } from './corpus.ts'
import { listExtracting } from './extract.ts'
import { mapParallel, scanPairs } from './scan-pairs.ts'
import { installAllTools, installTools } from './tools.ts'

/**
 * Scans content that real programs hid in files: of each form the first sample, with ASSAY_TEST_CORPUS=all every one.
 * Then each sample must also be extracted by a real program if its form says so.
 */
const isWhole = process.env.ASSAY_TEST_CORPUS === 'all'

const service = getSharedService()
const skip = await lacksClamAv(service.url)
if (skip === false) {
  if (isWhole) installAllTools()
  else installTools(forms.flatMap(({ needs }) => needs))
}
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
    const scanned = await scanPairs(service.url, key, makePairs(form, isWhole ? undefined : 1))
    const wrong = scanned.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`))
    assert.deepEqual(wrong, [])
  })

  if (!isWhole) continue
  test(`${form.family}: ${form.name}: a program extracts the content`, { skip: reason }, async () => {
    const opened = makePairs(form).filter(({ expectation }) => expectation === 'opened')
    const options = { special: form.extractors, isFirstEnough: true }
    const extracting = await mapParallel(opened, 2, (pair) => listExtracting(pair, pair.payload, options))
    const unproven = opened.filter((_, n) => extracting[n]?.length === 0).map(({ name }) => name)
    assert.deepEqual(unproven, [])
  })
}
