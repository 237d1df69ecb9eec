import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { openHttpProcesses } from '../../src/compose/http-process/open-processes.ts'
import { type CallDeps, toProcessConfig } from '../../src/compose/http-process/wire.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeLogger } from '../../src/runtime/logger.ts'

async function openOne(t: TestContext, onReady = () => {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-http-processes-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  const lines: string[] = []
  const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir, ASSAY_LOG_REQUESTS: 'off' })
  const opening = openHttpProcesses({
    settings: {
      config: toProcessConfig(config),
      count: 1,
      socketPath: join(dataDir, 'main.sock'),
      memoryBytes: 1_000_000,
      pictureBytes: 1_000_000,
      endsWithClient: false,
    },
    calls: { wrongKeys: { async refuseTooMany() {} } } as unknown as CallDeps,
    isOutage: () => false,
    log: makeLogger({ level: 'info', region: 'test', format: 'json' }, { write: (line) => void lines.push(line) }),
    onReady,
  })
  const readPids = () =>
    lines.map((line) => JSON.parse(line)).flatMap(({ msg, pid }) => (msg === 'HTTP process ready' ? [Number(pid)] : []))
  return { opening, lines, readPids }
}

test('no secret among the settings is sent to HTTP processes', () => {
  const { config, settings } = loadConfig({})
  const secrets = settings.filter(({ secret }) => secret).map(({ name }) => name as string)
  assert(secrets.includes('masterKey'))
  assert.deepEqual(
    Object.keys(toProcessConfig(config)).filter((name) => secrets.includes(name)),
    [],
  )
})

test('a process that the system cannot start is an error with its reason', async (t) => {
  const { execPath } = process
  process.execPath = join(tmpdir(), 'assay-no-such-program')
  try {
    const { opening, lines } = await openOne(t)
    await assert.rejects(opening, { message: /^An HTTP process could not be started/ })
    assert.match(lines.join(''), /ENOENT.*"an HTTP process could not be started"/)
  } finally {
    process.execPath = execPath
  }
})

test('an HTTP process is replaced during a stop, and the main process keeps no connection that it does not confirm', async (t) => {
  const replaced = Promise.withResolvers<void>()
  let ready = 0
  const { opening, readPids } = await openOne(t, () => {
    if (++ready === 2) replaced.resolve()
  })
  const processes = await opening
  t.after(() => processes.close())
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, processes.pass)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())

  // The order to stop goes to a process that has just ended. The next one must get it too.
  const [first = 0] = readPids()
  process.kill(first, 'SIGKILL')
  while (!hasEnded(first));
  processes.startStopping()
  await replaced.promise

  // The copy of a connection is closed here after some time; the process has its own, and answers.
  const [, second = 0] = readPids()
  process.kill(second, 'SIGSTOP')
  const client = connect((server.address() as { port: number }).port, '127.0.0.1')
  client.write('GET /v1/ping HTTP/1.1\r\nHost: test\r\n\r\n')
  const [copy] = (await once(server, 'connection')) as [Socket]
  await once(copy, 'close')
  process.kill(second, 'SIGCONT')
  assert.match(await text(client), /^HTTP\/1.1 401 .*connection: close/is)
})

/** Tells whether all threads have ended, and with the last one all files are closed. The system still has the process. */
const hasEnded = (pid: number) =>
  /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) && readdirSync(`/proc/${pid}/task`).length === 1
