import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { makeLogger } from '../../src/runtime/logger.ts'

type Log = ReturnType<typeof makeLogger>

/** Lines that a logger of this format writes, without their time. */
function collect(format: 'text' | 'json', write: (log: Log) => void): string[] {
  const lines: string[] = []
  const output = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  write(makeLogger({ level: 'info', region: 'test', format }, output))
  return lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, '').trimEnd())
}

test('text has one short line for each event, with its fields in words', () => {
  const lines = collect('text', (log) => {
    log.info({ pid: 7, auditRow: 1 }, 'ClamAV runs')
    log.warn('signatures are old')
    log.error({ err: new Error('no answer', { cause: new Error('refused') }) }, 'cannot reach it')
  })
  assert.deepEqual(lines, [
    'ClamAV runs (pid 7, audit row 1)',
    'warning signatures are old',
    'error cannot reach it: no answer: refused',
  ])
})

test('text shows what a terminal would obey', () => {
  const hostile = 'a\u001b[2Jb\rc\nd\u202egnp.exe\u200b'
  const [line] = collect('text', (log) => log.info({ message: hostile }, hostile))
  const shown = 'a<U+001B>[2Jb<U+000D>c<U+000A>d<U+202E>gnp.exe<U+200B>'
  assert.equal(line, `${shown} (message ${shown})`)
})

test('text cuts long values and hides credentials', () => {
  const [long, secret] = collect('text', (log) => {
    log.info({ value: 'x'.repeat(5000) }, 'long')
    log.info({ url: 'https://ada:secret@example.com/' }, 'secret')
  })
  assert.equal(long?.length, 'long (value …)'.length + 200)
  assert(!secret?.includes('ada:secret'), secret)
})

test('JSON lines keep every field and the stack of an error', () => {
  const [line = ''] = collect('json', (log) => log.error({ err: new Error('no answer') }, 'failed'))
  const { level, region, msg, err } = JSON.parse(line)
  assert.deepEqual({ level, region, msg }, { level: 'error', region: 'test', msg: 'failed' })
  assert.match(err.stack, /logger\.test\.ts/)
})

test('lines of several processes that share standard error are not mixed', async () => {
  const program = `
    import { makeServiceLogs } from ${JSON.stringify(import.meta.resolve('../../src/runtime/logger.ts'))}
    const { log, flush } = makeServiceLogs({ level: 'info', region: 'test', format: 'json', isShared: true })
    for (let n = 0; n < 10_000; n++) log.info({ value: 'ä'.repeat(n % 300) }, 'line')
    await flush()
  `
  const { execPath } = process
  const child = spawn(
    'sh',
    ['-c', '"$0" --input-type=module -e "$1" & "$0" --input-type=module -e "$1"; wait', execPath, program],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  const lines = (await text(child.stderr)).trimEnd().split('\n')
  for (const line of lines) assert.equal(JSON.parse(line).msg, 'line')
  assert.equal(lines.length, 20_000)
})
