import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { maskVariables, readCodeBlocks, toFileName } from '../support/code-blocks.ts'
import { getTaker, listDocuments } from '../support/document-runners.ts'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { openOrigin } from '../support/origin.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { makeReadersDirectory, toReadersEnvironment } from '../support/readers-directory.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { openTerminal } from '../support/terminal.ts'
import { saveNpm } from '../support/without-npm.ts'

/**
 * Follows the guides as a reader would, in one terminal and one directory for each: a block that begins with the name of a
 * file is saved under it, a block of shell is typed, and the `json` or `text` after it is what must come. What has no
 * language is there to be looked at.
 */
const guides = listDocuments(import.meta.filename)
const service = getSharedService()
const skip = (await lacksClamAv(service.url)) || lacksPrograms('curl', 'python3')
let account: ReturnType<typeof service.createAccount> | undefined
/** The guides share an account, which has credits without end. */
const getAccount = () => {
  account ??= service.createAccount('--plan', 'unlimited')
  return account
}

describe('the guides', { skip: alreadyTested || skip, concurrency: true }, () => {
  for (const guide of guides) {
    test(`${guide} shows what happens`, async (t) => {
      const { api_key, webhook_secret } = await getAccount()
      const receiver = await findFreeAddress()
      const dir = makeReadersDirectory()
      copyPreparedDatabase(join(dir, 'data'))
      const terminal = openTerminal(dir, { ...toReadersEnvironment(dir), ASSAY_DATA_DIR: join(dir, 'data') })
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

      const blocks = readCodeBlocks(guide)
      const takes = getTaker(guide, import.meta.filename)
      let typed = 0
      for (const [n, block] of blocks.entries()) {
        const { language, text } = block
        const name = toFileName(block)
        if (name !== undefined) writeFileSync(join(dir, name), toHere(text))
        else if (takes(block)) {
          const { language: kind = '', text: shown = '' } = blocks[n + 1] ?? {}
          requireSame(await terminal.type(saveNpm(toHere(text), import.meta.filename)), kind, toHere(shown))
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

/** For a webhook receiver of the guide, where the service may call it. */
async function findFreeAddress() {
  const { url, port, close } = await openOrigin({})
  await close()
  return { url, port }
}
