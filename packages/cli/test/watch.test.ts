import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, startCli } from './run-cli.ts'

const base = { scan_type: 'malware', content_length: 1, content_type: '', created_at: '' }
const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const fast = ['--settle', '0.3', '--interval', '0.1', '--no-summary']
const waitMs = 60_000

type Asked = Parameters<Parameters<typeof openFakeServer>[1]>[0]

/** A service that calls bad what has BAD in it, and a directory that is watched. */
async function openWatched(t: TestContext, react?: (asked: Asked) => { status: number; json?: object } | undefined) {
  const cwd = openDir(t)
  const inbox = join(cwd, 'inbox')
  mkdirSync(join(inbox, 'sub'), { recursive: true })
  const fake = await openFakeServer(t, (asked) => {
    const own = react?.(asked)
    if (own !== undefined) return own
    const isBad = asked.body.includes('BAD')
    return { json: { ...base, id, status: isBad ? 'threat' : 'clean', signals: isBad ? ['Virus:Bad'] : [] } }
  })
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const start = (...args: string[]) => {
    const running = startCli(['watch', ...args, 'inbox'], { cwd, env })
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

test('what is there and what arrives is scanned, once it has stopped growing; Ctrl-C ends with a summary', async (t) => {
  const { inbox, fake, start } = await openWatched(t)
  writeFileSync(join(inbox, 'before.txt'), 'before')
  const watching = start('--settle', '1.5', '--interval', '0.1')
  await watching.until('inbox/before.txt: OK')
  writeFileSync(join(inbox, 'sub/arrives.txt'), 'BAD')
  // Is written to for as long as the other takes to be found, which came at the same time.
  await waitUntil(
    'the other',
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
  assert(existsSync(join(inbox, 'sub/arrives.txt')), 'nothing is moved unless it is asked for')
})

test('after a restart only what is new or has changed is scanned, and threats are told again', async (t) => {
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

test('threats are moved when asked, never over another file, and are not scanned there', async (t) => {
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

test('threats are deleted when asked, and what was put in their place is not', async (t) => {
  const watched = await openWatched(t, ({ body }) => {
    // Somebody is quicker than the verdict.
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

test('a service that is away for a while is waited for; a key that is refused ends it', async (t) => {
  let isAway = true
  let isRefused = false
  const { inbox, start } = await openWatched(t, () =>
    isRefused ? { status: 401 } : isAway ? { status: 500, json: { traceId: '00-1' } } : undefined,
  )
  writeFileSync(join(inbox, 'a.txt'), 'a')
  const watching = start(...fast)
  await waitUntil('the message', () => watching.err().includes('Trying again until it is better.'), waitMs)
  isAway = false
  await watching.until('inbox/a.txt: OK')
  assert.match(watching.err(), /\nGoing on\.\n/)
  isRefused = true
  writeFileSync(join(inbox, 'b.txt'), 'b')
  const { code, err } = await watching.ended
  assert.equal(code, 2)
  assert.match(err, /does not accept this API key/)
})
