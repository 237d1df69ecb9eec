import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { getTaker } from '../support/document-runners.ts'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const skip = lacksPrograms('curl')
const commands = readCodeBlocks('docs/console.md').filter(getTaker('docs/console.md', import.meta.filename))

let account = ''
before(async () => {
  account = (await service.createAccount('--plan', 'free', '--credits', '0')).id
})

test('the commands of docs/console.md do what it says', { skip }, async () => {
  const env = {
    ...process.env,
    ASSAY: service.url,
    TOKEN: service.settings.ASSAY_ADMIN_TOKEN,
    ACCOUNT: account,
    SHA256: randomBytes(32).toString('hex'),
  }
  const answers = []
  for (const { text } of commands) {
    const { stdout } = await promisify(execFile)('sh', ['-ec', text], { env })
    answers.push(JSON.parse(stdout))
  }
  const [status, created, granted, entry, audit] = answers
  assert.equal(answers.length, 5)
  assert(['ok', 'degraded'].includes(status.status), JSON.stringify(status))
  assert.match(created.invitation_url, /\/console\/welcome#/)
  assert.equal(granted.credit_remaining, 500)
  assert.equal(entry.value, env.SHA256)
  const days = (Date.parse(entry.expires_at) - Date.now()) / 86_400_000
  assert(days > 29 && days <= 30, entry.expires_at)
  assert(audit.items.length > 0 && audit.items.length <= 10)
  assert(
    audit.items.some(
      ({ action, target }: { action: string; target: string }) => action === 'list.allow' && target === env.SHA256,
    ),
  )
})
