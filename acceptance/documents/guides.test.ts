import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, test } from 'node:test'
import { maskVariables, readCodeBlocks, toFileName } from '../support/code-blocks.ts'
import { openOrigin } from '../support/origin.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { openTerminal } from '../support/terminal.ts'

/**
 * Follows the guides as a reader would, in one terminal and one directory for each: a block that begins with the name of a
 * file is saved under it, a block of shell is typed, and the `json` or `text` after it is what must come. What has no
 * language is there to be looked at.
 */
const guides = ['quickstart', 'integrate', 'verdicts', 'webhooks', 'moving', 'security', 'faq']
/** Is done before a guide begins: the README's test runs it, and `npm run check:fresh-machine`. */
const start = 'npm ci && npm start\n'

const repository = new URL('../../', import.meta.url).pathname
const service = getSharedService()
/** `npm test` installs them where it may. */
const lacking = ['curl', 'python3'].filter((command) => spawnSync(command, ['--version']).status !== 0)
const skip = (await lacksClamAv(service.url)) || (lacking.length > 0 && `not installed: ${lacking.join(', ')}`)
let account: ReturnType<typeof service.createAccount> | undefined
/** One for all guides: it has credits without end. */
const getAccount = () => {
  account ??= service.createAccount('--plan', 'unlimited')
  return account
}

describe('the guides', { skip: alreadyTested || skip, concurrency: true }, () => {
  for (const guide of guides) {
    test(`docs/${guide}.md shows what happens`, async (t) => {
      const { api_key, webhook_secret } = await getAccount()
      const receiver = await findFreeAddress()
      const dir = makeReadersDirectory()
      const terminal = openTerminal(dir, { ...process.env, ASSAY_DATA_DIR: join(dir, 'data'), PATH: toPath(dir) })
      t.after(async () => {
        await terminal.close()
        rmSync(dir, { recursive: true, force: true })
      })
      const toHere = (text: string) =>
        text
          .replaceAll(/assay_[0-9A-Za-z]{38}/g, api_key)
          .replaceAll(/(?<=export \w+=)whsec_[A-Za-z0-9+/]{43}=/g, webhook_secret)
          .replaceAll('http://127.0.0.1:8080', service.url)
          .replaceAll('http://127.0.0.1:9000', receiver.url)
          .replaceAll(/\b9000\b/g, String(receiver.port))
          .replaceAll('https://example.com', process.env.ASSAY_TEST_ORIGIN ?? '')
          .replaceAll('https://hooks.example.com', process.env.ASSAY_TEST_ORIGIN ?? '')
          .replaceAll('/var/lib/assay', join(dir, 'data'))

      const blocks = readCodeBlocks(`docs/${guide}.md`)
      let typed = 0
      for (const [n, block] of blocks.entries()) {
        const { language, text } = block
        const name = toFileName(block)
        if (name !== undefined) writeFileSync(join(dir, name), toHere(text))
        else if (language === 'sh' && text !== start) {
          const { language: kind = '', text: shown = '' } = blocks[n + 1] ?? {}
          requireSame(await terminal.type(toHere(text)), kind, toHere(shown))
          typed++
        } else if (['js', 'python'].includes(language)) assert.fail(`It has no file name, so nothing runs it:\n${text}`)
      }
      assert(typed > 0, 'There is nothing to type in it.')
    })
  }
})

/** A block of shell that no answer follows may print what it likes. */
function requireSame(said: string, kind: string, shown: string) {
  if (kind === 'json') assert.deepEqual(JSON.parse(maskVariables(said)), JSON.parse(maskVariables(shown)))
  if (kind === 'text') assert.equal(maskVariables(said), maskVariables(shown))
}

/** What of the repository the guides use, and room for what they make. */
function makeReadersDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-reader-'))
  mkdirSync(join(dir, 'node_modules', '@assay'), { recursive: true })
  for (const name of ['@assay/client', '.bin'])
    symlinkSync(join(repository, 'node_modules', name), join(dir, 'node_modules', name))
  cpSync(join(repository, 'docs', 'test-images'), join(dir, 'docs', 'test-images'), { recursive: true })
  symlinkSync(join(repository, 'packages'), join(dir, 'packages'))
  cpSync(join(repository, 'package.json'), join(dir, 'package.json'))
  return dir
}

/** The Node of the lockfile, as a reader with a newer Node than the oldest that works. */
const toPath = (dir: string) => [join(dir, 'node_modules', '.bin'), process.env.PATH].join(delimiter)

/** For a webhook receiver of the guide, where the service may call it. */
async function findFreeAddress() {
  const { url, port, close } = await openOrigin({})
  await close()
  return { url, port }
}
