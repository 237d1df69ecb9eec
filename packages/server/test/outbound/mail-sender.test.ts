import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { pino } from 'pino'
import { makeMailSender } from '../../src/outbound/senders.ts'

test('the words and the address of a mail server are logged, and not in the reason that owners see', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
  const server = createServer((socket) => socket.end('554 relay-7.internal refuses you\r\n')).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sender = makeMailSender({ url: new URL(`smtp://127.0.0.1:${port}`), from: 'assay@example.com', log })
  const send = () => sender.send({ to: 'ada@example.com', subject: 'x', text: 'x' })
  assert.match((await send()) ?? '', /^The mail server did not take the mail \([A-Z]+, 554\)\.$/)
  assert.match(lines[0] ?? '', /relay-7\.internal/)
  server.close()
  await once(server, 'close')
  assert.match((await send()) ?? '', /^The mail server did not take the mail \([A-Z]+\)\.$/)
  assert(lines[1]?.includes(`127.0.0.1:${port}`), lines[1])
})
