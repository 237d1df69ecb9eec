import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eicar } from '../../../acceptance/support/archives.ts'
import { maskVariables, readCodeBlocks } from '../../../acceptance/support/code-blocks.ts'
import { getTaker } from '../../../acceptance/support/document-runners.ts'
import { lacksClamAv } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { commands } from '../src/command-line/commands.ts'
import { mainFile, newEnv, openDir } from './run-cli.ts'

const service = getSharedService()
const origin = process.env.ASSAY_TEST_ORIGIN ?? ''
const blocks = readCodeBlocks('docs/command-line.md')
const document = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8')
const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const takes = getTaker('docs/command-line.md', import.meta.filename)

describe('docs/command-line.md', async () => {
  const lacking = await lacksClamAv(service.url)
  const cwd = openDir({ after })
  const env = newEnv(cwd, { PATH: `${cwd}/bin:${process.env.PATH}` })
  before(async () => {
    const { api_key: apiKey } = await service.createAccount()
    mkdirSync(join(cwd, 'bin'))
    writeFileSync(join(cwd, 'bin/assay-scan'), `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`)
    chmodSync(join(cwd, 'bin/assay-scan'), 0o755)
    writeFileSync(join(cwd, 'key.txt'), apiKey)
    mkdirSync(join(cwd, 'inbox/invoices'), { recursive: true })
    for (const path of ['letter.txt', 'inbox/letter.txt']) writeFileSync(join(cwd, path), 'Dear Sir or Madam,\n')
    writeFileSync(join(cwd, 'inbox/invoices/2026-11.csv'), 'number,amount\n1,100\n')
    writeFileSync(join(cwd, 'inbox/invoices/eicar.com'), eicar)
    writeFileSync(join(cwd, 'upload.bin'), eicar)
    copyFileSync(new URL('../../../docs/test-images/sexy.png', import.meta.url), join(cwd, 'holiday.png'))
  })
  const toReal = (text: string) =>
    text.replaceAll('https://scan.example.com', service.url).replaceAll('https://www.example.com', origin)
  const inDocument = (text: string) => text.replaceAll(service.url, 'https://scan.example.com')
  const run = (line: string) =>
    new Promise<{ code: number; out: string; err: string }>((resolve) => {
      execFile('bash', ['-c', toReal(line)], { cwd, env }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), out: inDocument(out), err }),
      )
    })
  /** Masks values that vary between runs, and sorts the lines, because scans complete in any order. */
  const mask = (text: string) =>
    maskVariables(text)
      .replaceAll(/Time: .*/g, 'Time')
      .replaceAll(/[\d,]+ of [\d,]+/g, 'CREDITS')
      .split('\n')
      .sort()

  for (const [i, block] of blocks.entries()) {
    if (!takes(block)) continue
    for (const line of block.text.trimEnd().split('\n')) {
      test(line, { skip: lacking }, async () => {
        if (line.includes(' watch ')) return await watch(line)
        if (line.includes(' listen ')) return await listen(line)
        const job = line.includes(id)
          ? /[0-9a-f-]{36}/.exec((await run('assay-scan --submit letter.txt')).out)?.[0]
          : ''
        const { code, out, err } = await run(line.replace(id, job ?? ''))
        assert.doesNotMatch(err, /assay-scan: /)
        const isBad = /(inbox|holiday\.png)$/.test(line.replace(/ +#.*/, ''))
        assert.equal(code, isBad ? 1 : 0, out + err)
        const next = blocks[i + 1]
        if (next?.language === 'text') assert.deepEqual(mask(out), mask(next.text))
        if (next?.language === 'json') {
          const documented = JSON.parse(next.text)
          const line = out.split('\n').find((each) => each.includes(documented.path)) ?? ''
          assert.deepEqual({ ...JSON.parse(line), ...documented }, { ...JSON.parse(line), id: documented.id })
        }
        if (line.startsWith('if')) assert.equal(out, 'upload.bin: Eicar-Test-Signature FOUND\nrefused\n')
      })
    }
  }

  /** Runs until it is interrupted. */
  async function watch(line: string) {
    const child = spawn('bash', ['-c', `exec ${line}`], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        out += text
      })
    }
    const ended = new Promise((resolve) => child.once('close', resolve))
    await waitUntil(
      'the move',
      () => out.includes('inbox/invoices/eicar.com was moved to quarantine/eicar.com.'),
      60_000,
    )
    child.kill('SIGINT')
    assert.equal(await ended, 1)
  }

  /** The program of the reader is missing here: webhooks are forwarded in listen.test.ts. */
  async function listen(line: string) {
    const child = spawn('bash', ['-c', `exec ${line}`], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text
    })
    const ended = new Promise((resolve) => child.once('close', resolve))
    await waitUntil('the command to listen', () => err.includes('Listening for webhooks of'), 60_000)
    child.kill('SIGINT')
    assert.equal(await ended, 0)
  }

  test('every option and command is in it', () => {
    for (const { name, options } of commands) {
      if (name !== 'scan') assert(document.includes(`assay-scan ${name}`), name)
      for (const option of options) assert(document.includes(`--${option.name}`), `${name} --${option.name}`)
    }
  })
})
