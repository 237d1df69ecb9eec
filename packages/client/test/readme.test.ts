import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { eicar } from '../../../acceptance/support/archives.ts'
import { readCodeBlocks } from '../../../acceptance/support/code-blocks.ts'
import { alreadyTested, lacksClamAv } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { findUnusedUrl } from './fake-server.ts'

const service = getSharedService()
const blocks = readCodeBlocks('packages/client/README.md').filter(({ language }) => language === 'js')
const [first, background, errors, fastify, express, next, workers, anywhere] = blocks.map(({ text }) => text)
const modules = fileURLToPath(new URL('../../../node_modules/', import.meta.url))
const secret = 'whsec_WUOMk48YN/5jO/ak8ocbDIcUsz0hhfn4n9FTGWsRPd8='

describe('the examples in the README', { skip: alreadyTested }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-readme-'))
  const lacking = await lacksClamAv(service.url)
  let apiKey = ''
  before(async () => {
    apiKey = (await service.createAccount()).api_key
    mkdirSync(join(dir, 'node_modules', '@assay'), { recursive: true })
    for (const name of ['@assay/client', 'fastify', 'express'])
      symlinkSync(modules + name, join(dir, 'node_modules', name))
    writeFileSync(join(dir, 'upload.zip'), eicar)
  })
  after(() => rmSync(dir, { recursive: true, force: true }))
  const getEnv = () => ({ ...process.env, ASSAY_API_KEY: apiKey, ASSAY_WEBHOOK_SECRET: secret })

  let files = 0
  const write = (text = '') => {
    const path = join(dir, `sample-${++files}.mjs`)
    writeFileSync(path, text.replaceAll('https://scan.example.com', service.url))
    return path
  }
  const run = async (text: string | undefined) =>
    (await promisify(execFile)(process.execPath, [write(text)], { cwd: dir, env: getEnv() })).stdout

  test('scan', { skip: lacking }, async () => {
    assert.equal(await run(first), "not accepted: [ 'Virus:Eicar-Test-Signature' ]\n")
    assert.match(await run(background), /^68 bytes sent\nholidays\.zip threat \d+\n$/)
    assert.match(await run(errors), /^\[\s+'file must be a JPEG, PNG, GIF or WebP image\.',?\s+\]\n$/)
  })

  for (const [name, text = ''] of [
    ['Fastify', fastify],
    ['Express', express],
  ]) {
    test(`receive webhooks with ${name}`, async (t) => {
      const url = await findUnusedUrl()
      const sample = write(text.replace('3000', new URL(url).port))
      const child = spawn(process.execPath, [sample], { cwd: dir, env: getEnv(), stdio: 'ignore' })
      t.after(() => child.kill())
      const post = () => fetch(`${url}/webhooks/assay`, { method: 'POST', body: '{}' }).catch(() => undefined)
      await waitUntil('the receiver to listen', async () => (await post()) !== undefined)
      assert.equal((await post())?.status, 401)
    })
  }

  test('receive webhooks with Next, with Workers, and anywhere', async () => {
    process.env.ASSAY_WEBHOOK_SECRET = secret
    const load = async (text: string | undefined) => await import(pathToFileURL(write(text)).href)
    const request = () => new Request('http://receiver.example/', { method: 'POST', body: '{}' })
    assert.equal((await (await load(next)).POST(request())).status, 401)
    const env = { ASSAY_WEBHOOK_SECRET: secret }
    assert.equal((await (await load(workers)).default.fetch(request(), env)).status, 401)
    await assert.rejects((await load(anywhere)).receive(Buffer.from('{}'), {}), { name: 'WebhookRejected' })
  })
})
