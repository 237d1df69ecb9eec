import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult, type ReceivedRequest } from '../../client/test/fake-server.ts'
import { openFakeCli } from './run-cli.ts'

const fast = ['--settle', '0.3', '--interval', '0.1', '--no-summary']
const waitMs = 60_000

/** A directory to watch, and a fake server that reports content with BAD in it as a threat. */
async function openWatched(
  t: TestContext,
  react?: (request: ReceivedRequest) => { status: number; json?: object } | undefined,
) {
  const {
    cwd,
    fake,
    start: startCli,
  } = await openFakeCli(t, (request) => {
    const isBad = request.body.includes('BAD')
    return react?.(request) ?? { json: newResult(isBad ? 'threat' : 'clean', isBad ? ['Virus:Bad'] : []) }
  })
  const inbox = join(cwd, 'inbox')
  mkdirSync(join(inbox, 'sub'), { recursive: true })
  const start = (...args: string[]) => {
    const running = startCli(['watch', ...args, 'inbox'])
    t.after(() => running.child.kill('SIGKILL'))
    return {
      ...running,
      until: (line: string) =>
        waitUntil(
          `${line} in ${running.out()}${running.err()}`,
          () => `\n${running.out()}${running.err()}`.includes(`\n${line}\n`),
          waitMs,
        ),
      stop: (signal: NodeJS.Signals = 'SIGINT') => {
        running.child.kill(signal)
        return running.ended
      },
    }
  }
  return { cwd, inbox, fake, start }
}

test('present and new files are scanned once they stop growing, and Ctrl-C ends with a summary', async (t) => {
  const { inbox, fake, start } = await openWatched(t)
  writeFileSync(join(inbox, 'before.txt'), 'before')
  const watching = start('--settle', '1.5', '--interval', '0.1')
  await watching.until('inbox/before.txt: OK')
  writeFileSync(join(inbox, 'sub/arrives.txt'), 'BAD')
  // grows.txt keeps changing until arrives.txt, which was created at the same time, is scanned.
  await waitUntil(
    'arrives.txt',
    () => {
      appendFileSync(join(inbox, 'grows.txt'), 'line\n')
      return watching.out().includes('inbox/sub/arrives.txt: Bad FOUND\n')
    },
    waitMs,
  )
  assert(!watching.out().includes('grows.txt'))
  appendFileSync(join(inbox, 'grows.txt'), 'last line\n')
  await watching.until('inbox/grows.txt: OK')
  const { code, out } = await watching.stop()
  assert.equal(code, 1)
  assert.match(out, /SCAN SUMMARY -+\nScanned files: 3\nInfected files: 1\n/)
  const sent = fake.requests.filter(({ body }) => body.includes('line'))
  assert.deepEqual(
    sent.map(({ body }) => body.includes('last line')),
    [true],
  )
  assert(existsSync(join(inbox, 'sub/arrives.txt')), 'threats stay in place without an option')
})

test('after a restart only new and changed files are scanned, and threats are reported again', async (t) => {
  const { inbox, fake, start } = await openWatched(t)
  for (const name of ['same.txt', 'changes.txt']) writeFileSync(join(inbox, name), name)
  writeFileSync(join(inbox, 'bad.txt'), 'BAD')
  const first = start(...fast)
  for (const line of ['same.txt: OK', 'changes.txt: OK', 'bad.txt: Bad FOUND']) await first.until(`inbox/${line}`)
  await first.stop('SIGTERM')
  writeFileSync(join(inbox, 'changes.txt'), 'changed')
  writeFileSync(join(inbox, 'new.txt'), 'new')
  const second = start(...fast)
  for (const line of ['changes.txt: OK', 'new.txt: OK', 'bad.txt: Bad FOUND']) await second.until(`inbox/${line}`)
  const { out } = await second.stop()
  assert(!out.includes('same.txt'))
  assert.equal(fake.requests.length, 6)
})

test('--move-threats moves threats without overwriting files, and does not scan its directory', async (t) => {
  const { cwd, inbox, start } = await openWatched(t)
  mkdirSync(join(inbox, 'away'))
  writeFileSync(join(inbox, 'away/bad.txt'), 'was here before')
  writeFileSync(join(inbox, 'bad.txt'), 'BAD 1')
  writeFileSync(join(inbox, 'good.txt'), 'good')
  const watching = start('--move-threats', 'inbox/away', ...fast)
  await watching.until('inbox/bad.txt was moved to inbox/away/bad.txt.1.')
  await watching.until('inbox/good.txt: OK')
  writeFileSync(join(inbox, 'bad.txt'), 'BAD 2')
  await watching.until('inbox/bad.txt was moved to inbox/away/bad.txt.2.')
  const { out } = await watching.stop()
  assert(!out.includes('away/'))
  assert.deepEqual(readdirSync(inbox).sort(), ['away', 'good.txt', 'sub'])
  const contents = ['bad.txt', 'bad.txt.1', 'bad.txt.2'].map((name) => readFileSync(join(inbox, 'away', name), 'utf8'))
  assert.deepEqual(contents, ['was here before', 'BAD 1', 'BAD 2'])
  assert(existsSync(join(cwd, '.local/state/assay')))
})

test('--delete-threats deletes threats, and not a file that replaced one', async (t) => {
  const watched = await openWatched(t, ({ body }) => {
    // The file changes before the verdict arrives.
    if (body.includes('BAD swap')) writeFileSync(join(watched.inbox, 'swap.txt'), 'good and new')
    return undefined
  })
  const { inbox, start } = watched
  writeFileSync(join(inbox, 'bad.txt'), 'BAD')
  writeFileSync(join(inbox, 'swap.txt'), 'BAD swap')
  const watching = start('--delete-threats', ...fast)
  await watching.until('inbox/bad.txt was deleted.')
  await watching.until('inbox/swap.txt: OK')
  const { out } = await watching.stop()
  assert(!out.includes('swap.txt: Bad'))
  assert.deepEqual(readdirSync(inbox).sort(), ['sub', 'swap.txt'])
})

test('the watch continues after an outage of the service, and ends when the key is rejected', async (t) => {
  let isDown = true
  let isRejected = false
  const { inbox, start } = await openWatched(t, () =>
    isRejected ? { status: 401 } : isDown ? { status: 500, json: { traceId: '00-1' } } : undefined,
  )
  writeFileSync(join(inbox, 'a.txt'), 'a')
  const watching = start(...fast)
  await waitUntil('the message', () => watching.err().includes('Retrying until the service recovers.'), waitMs)
  isDown = false
  await watching.until('inbox/a.txt: OK')
  assert.match(watching.err(), /\nThe service has recovered\.\n/)
  isRejected = true
  writeFileSync(join(inbox, 'b.txt'), 'b')
  const { code, err } = await watching.ended
  assert.equal(code, 2)
  assert.match(err, /does not accept this API key/)
})

test('a file that the service refuses is one failure, and does not end the watch', async (t) => {
  const refused = { status: 422, json: { traceId: '00-1-1-01', errors: { file: ['file must be an image.'] } } }
  const { inbox, start } = await openWatched(t, ({ body }) => (body.includes('ODD') ? refused : undefined))
  writeFileSync(join(inbox, 'odd.txt'), 'ODD')
  const watching = start(...fast)
  await waitUntil('the refusal', () => watching.out().includes('inbox/odd.txt: '), waitMs)
  writeFileSync(join(inbox, 'next.txt'), 'next')
  await watching.until('inbox/next.txt: OK')
  assert.equal((await watching.stop()).code, 2)
})
