import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { receiptKeysPath } from '@assay/contract'
import { eicar } from '../support/archives.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toResult } from '../support/submitting.ts'

const service = getSharedService()
const dir = mkdtempSync(join(tmpdir(), 'assay-receipts-'))
after(() => rmSync(dir, { recursive: true, force: true }))

const save = (name: string, text: string) => {
  const file = join(dir, name)
  writeFileSync(file, text)
  return file
}

/** A program that finds no database: with the keys in a file it needs none. */
const offline = { ASSAY_DATABASE_URL: 'postgres://127.0.0.1:1/none' }
const content = 'a letter to an auditor'

describe('receipts', { skip: alreadyTested }, () => {
  let receipt = ''
  let [receiptFile, keyFile, resultFile, contentFile] = ['', '', '', '']
  before(async () => {
    const { api_key } = await service.createAccount()
    const caller = makeCaller(service.url, api_key)
    const { id } = toResult(await caller.sendFile('malware', 'scan', content), 201)
    const answer = await caller.fetchResult('malware', id, '?receipt=1')
    receipt = toResult(answer, 200).metadata?.receipt ?? ''
    receiptFile = save('receipt.jws', `${receipt}\n`)
    resultFile = save('result.json', answer.text)
    contentFile = save('letter.txt', content)
    keyFile = save('keys.json', await (await fetch(service.url + receiptKeysPath)).text())
  })

  test('are verified offline, with their content, and refused when anything differs', async () => {
    const verified = await runProgram(
      offline,
      'receipts',
      'verify',
      resultFile,
      '--keys',
      keyFile,
      '--content',
      contentFile,
      '--json',
    )
    assert.equal(verified.code, 0, verified.err)
    const { valid, content_matches, result, kid } = JSON.parse(verified.out)
    assert.deepEqual([valid, content_matches, result.content_length], [true, true, content.length])
    assert(verified.out.includes(kid) && JSON.parse(verified.out).installation_id.length === 36)

    const other = save('other.txt', `${content}.`)
    const wrong = await runProgram(offline, 'receipts', 'verify', receiptFile, '--keys', keyFile, '--content', other)
    assert.equal(wrong.code, 1)
    assert.match(wrong.err, /^The receipt is valid, but not about this content/)

    const [head, body = '', signature] = receipt.split('.')
    const claims = Buffer.from(body, 'base64url').toString().replace('"clean"', '"threat"')
    const forged = save('forged.jws', [head, Buffer.from(claims).toString('base64url'), signature].join('.'))
    const refused = await runProgram(offline, 'receipts', 'verify', forged, '--keys', keyFile, '--json')
    assert.equal(refused.code, 1)
    assert.match(JSON.parse(refused.out).error, /signature does not match/)
  })

  test('inside another result are not taken for that result, and only a clean one passes as clean', async () => {
    const clean = await runProgram(offline, 'receipts', 'verify', resultFile, '--keys', keyFile, '--clean')
    assert.equal(clean.code, 0, clean.err)
    const around = JSON.parse(readFileSync(resultFile, 'utf8'))
    const other = save('around.json', JSON.stringify({ ...around, content_name: 'other.txt' }))
    const refused = await runProgram(offline, 'receipts', 'verify', other, '--keys', keyFile)
    assert.deepEqual([refused.code, /not the one that was signed/.test(refused.err)], [1, true])

    const caller = makeCaller(service.url, (await service.createAccount()).api_key)
    const { id } = toResult(await caller.sendFile('malware', 'scan', eicar), 201)
    const threat = save('threat.json', (await caller.fetchResult('malware', id, '?receipt=1')).text)
    const keys = save('now.json', await (await fetch(service.url + receiptKeysPath)).text())
    const valid = await runProgram(offline, 'receipts', 'verify', threat, '--keys', keys)
    assert.equal(valid.code, 0, valid.err)
    const notClean = await runProgram(offline, 'receipts', 'verify', threat, '--keys', keys, '--clean')
    assert.deepEqual([notClean.code, /the result is threat/.test(notClean.err)], [1, true])
  })

  test('stay valid when the key is rotated', async () => {
    const { kid } = (await service.operate('receipts', 'rotate-key')) as { kid: string }
    const url = service.url + receiptKeysPath
    const byUrl = await runProgram(offline, 'receipts', 'verify', receiptFile, '--keys', url)
    assert.equal(byUrl.code, 0, byUrl.err)
    const { kid: former } = (await service.operate('receipts', 'verify', receiptFile)) as { kid: string }
    assert.notEqual(former, kid)
    const listed = (await service.operate('receipts', 'keys')) as { keys: { kid: string }[] }
    assert(listed.keys.some((key) => key.kid === kid))
  })
})
