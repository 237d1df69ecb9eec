import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type CodeBlock, readCodeBlocks, toFileName } from '../support/code-blocks.ts'
import { getTaker } from '../support/document-runners.ts'
import { makeReadersDirectory, toReadersEnvironment } from '../support/readers-directory.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { openTerminal } from '../support/terminal.ts'

/** Types the samples of each language, after the block with the variables and files that all of them use. */
const document = 'docs/languages.md'
const service = getSharedService()
const takes = getTaker(document, import.meta.filename)
const [first, ...rest] = readCodeBlocks(document)
/** Shell commands that succeed where a sample can run. */
const probes: Record<string, string> = {
  node: 'true',
  go: 'go version',
  php: 'php -r "curl_init();"',
  ruby: 'ruby --version',
  java: 'javac --version',
  mcs: 'mcs --version && mono --version && ls /usr/lib/mono/gac/System.Runtime.Serialization',
}

/** Compilers and samples run for a moment: without this, collecting garbage and optimizing take most of their time. */
const brief = { GOGC: 'off', JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData' }

type Sample = { files: CodeBlock[]; commands: CodeBlock; answer: CodeBlock | undefined }

/** A sample is one or more files, the commands that run them, and the answer. */
function listSamples(): Sample[] {
  const samples: Sample[] = []
  let files: CodeBlock[] = []
  for (const [n, block] of rest.entries()) {
    if (toFileName(block) !== undefined) files.push(block)
    if (!takes(block)) continue
    samples.push({ files, commands: block, answer: rest[n + 1] })
    files = []
  }
  return samples
}

describe(document, { skip: alreadyTested || (await lacksClamAv(service.url)) }, () => {
  for (const { files, commands, answer } of listSamples()) {
    const [command = ''] = commands.text.split(' ')
    const probe = probes[command] ?? assert.fail(`No probe is known for ${command}.`)
    const skip = spawnSync('sh', ['-c', probe]).status !== 0 && `${command} is not installed`
    test(`the sample for ${command} prints what is shown`, { skip }, async (t) => {
      const { api_key: apiKey } = await service.createAccount()
      const dir = makeReadersDirectory()
      // Go keeps its build cache below the home directory.
      const terminal = openTerminal(dir, { ...toReadersEnvironment(dir), ...brief, HOME: dir })
      t.after(async () => {
        await terminal.close()
        rmSync(dir, { recursive: true, force: true })
      })
      const toHere = (text: string) =>
        text.replaceAll(/assay_[0-9A-Za-z]{38}/g, apiKey).replaceAll('http://127.0.0.1:8080', service.url)
      for (const block of files) writeFileSync(join(dir, toFileName(block) ?? ''), block.text)
      await terminal.type(toHere(first?.text ?? ''))
      assert.equal((await terminal.type(commands.text)).trim(), answer?.text.trim())
      // The samples are worth little if they take any signature for a genuine one.
      const verify = commands.text.trim().split('\n').at(-1) ?? ''
      assert.match(await terminal.type(verify.replace('$SIGNATURE', '0$SIGNATURE')), /(^|\n)false\s*$/)
    })
  }
})
