import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { newRandom, spoil } from '../listeners/splits.ts'
import { newContent } from '../scans/scan-support.ts'
import {
  answering,
  goOn,
  noContent,
  openClient,
  optionsWith,
  previewOptions,
  scanOnce,
  startIcapServer,
  toMessage,
  usualOptions,
} from './icap-support.ts'

const without204 = optionsWith()
const { signal } = new AbortController()
const isOptions = ({ text }: { text: string }) => text.startsWith('OPTIONS')

describe('a hostile ICAP server', () => {
  test('that closes the connection at any byte of its answer has not answered', async () => {
    let cut = 0
    let whole = ''
    const server = await startIcapServer((request, socket) => {
      const answer = isOptions(request) ? without204 : whole
      const isCut = !isOptions(request)
      socket.write(isCut ? answer.slice(0, cut) : answer)
      if (isCut) socket.end()
      return undefined
    })
    const adapter = openClient(server.port)
    for (whole of [noContent, toMessage('some content')]) {
      for (cut = 0; cut < whole.length; cut++) {
        const scan = adapter.scan(newContent('some content'), { signal: AbortSignal.timeout(20_000), fileName: 'a' })
        await assert.rejects(scan, EngineDown, `${whole.slice(0, 20)} cut at ${cut}`)
      }
    }
    await adapter.close()
    server.close()
  })

  test('that closes the connection at any byte of its options has not answered', async () => {
    for (let cut = 0; cut < usualOptions.length; cut += 7) {
      const answer = scanOnce((_request, socket) => void socket.end(usualOptions.slice(0, cut)))
      await assert.rejects(answer, EngineDown, `cut at ${cut}`)
    }
  })

  test('that hangs at any point is left when the caller leaves', async () => {
    const points: [name: string, options: string, answers: string[]][] = [
      ['before its options', '', []],
      ['within its options', usualOptions.slice(0, 30), []],
      ['before its answer', usualOptions, ['']],
      ['within its head', usualOptions, [noContent.slice(0, 20)]],
      ['before the end of the preview', previewOptions, ['']],
      ['after the preview', previewOptions, [goOn, '']],
      ['within the message', without204, [toMessage('some content').slice(0, 120)]],
      ['within the content', without204, [toMessage('some content').slice(0, -10)]],
    ]
    for (const [name, options, answers] of points) {
      const caller = new AbortController()
      let scans = 0
      const respond = (request: { text: string }) => {
        const answer = isOptions(request) ? options : (answers[scans++] ?? '')
        const isLast = isOptions(request) ? answers.length === 0 : scans === answers.length
        if (isLast) setImmediate(() => caller.abort(new Error('The caller left')))
        return answer
      }
      await assert.rejects(scanOnce(respond, { signal: caller.signal }), { message: 'The caller left' }, name)
    }
  })

  test('that sends no end of headers, content or options is left', async () => {
    const repeat = (socket: Socket, text: string) => {
      const many = text.repeat(1000)
      const write = () => {
        while (!socket.destroyed && socket.write(many)) {}
        if (!socket.destroyed) socket.once('drain', write)
      }
      write()
    }
    const endless = (start: string, text: string, options = without204) =>
      scanOnce((request, socket) => {
        if (isOptions(request)) return options
        socket.write(start)
        repeat(socket, text)
        return undefined
      })
    await assert.rejects(endless('ICAP/1.0 204 OK\r\n', 'X-Filler: 1\r\n'), /header is longer/)
    await assert.rejects(endless('ICAP/1.0 204 OK\r\n', 'x'.repeat(1000)), /header is longer/)
    await assert.rejects(endless('ICAP/1.0 100 Continue\r\n\r\n', goOn), EngineDown)
    await assert.rejects(endless('', '\r\n'), EngineDown)
    const begun = toMessage('some content').slice(0, -5)
    assert.deepEqual((await endless(begun, '4\r\nmore\r\n')).findings, ['ChangedContent'])
    await assert.rejects(endless(`${begun}0\r\n`, 'Trailer: 1\r\n'), /trailer/)
    await assert.rejects(
      scanOnce((_request, socket) => {
        socket.write('ICAP/1.0 200 OK\r\nEncapsulated: opt-body=0\r\n\r\n')
        repeat(socket, '4\r\nmore\r\n')
        return undefined
      }),
      /OPTIONS is too long/,
    )
    const many = `ICAP/1.0 204 OK\r\n${'A: b\r\n'.repeat(201)}\r\n`
    await assert.rejects(scanOnce(answering(many)), /more than 200 header lines/)
  })

  test('that answers nonsense has not answered', async () => {
    const nonsense = [
      'HTTP/1.1 204 No Content\r\n\r\n',
      'ICAP/1.0 2040 Much\r\n\r\n',
      'ICAP/1.0 999 Odd\r\n\r\n',
      'ICAP/1.0\r\n\r\n',
      'SSH-2.0-OpenSSH_9.2p1\r\n\r\n',
      'ICAP/1.0 204 OK\r\n folded first\r\n\r\n',
      'ICAP/1.0 204 OK\r\nNo colon\r\n\r\n',
      'ICAP/1.0 204 OK\r\nEncapsulated: res-body=0\r\n\r\n4\r\nmore\r\n0\r\n\r\n',
      'ICAP/1.0 204 OK\r\nEncapsulated: null-body=7\r\n\r\n',
      'ICAP/1.0 200 OK\r\n\r\n',
      'ICAP/1.0 200 OK\r\nEncapsulated: null-body=0\r\n\r\n',
      'ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=999999999\r\n\r\n',
      'ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=4\r\n\r\nHTTP/1.1 200 OK\r\n\r\n0\r\n\r\n',
      'ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, null-body=8\r\n\r\nHTTP\r\n\r\n',
      toMessage('some content').replace('c\r\nsome', 'b\r\nsome'),
      toMessage('some content').replace('c\r\nsome', '-1\r\nsome'),
      toMessage('some content').replace('c\r\nsome', 'ffffffffff\r\nsome'),
      toMessage('some content').replace('c\r\nsome', '\r\nsome'),
      goOn,
    ]
    for (const answer of nonsense) {
      const scan = scanOnce((request, socket) => {
        if (isOptions(request)) return without204
        socket.end(answer)
        return undefined
      })
      await assert.rejects(scan, EngineDown, answer)
    }
  })

  test('that sends an answer before it is asked, or two at once, loses its connection', async () => {
    const server = await startIcapServer((request) => (isOptions(request) ? usualOptions : `${noContent}${noContent}`))
    const adapter = openClient(server.port)
    for (let count = 0; count < 2; count++) {
      const { findings } = await adapter.scan(newContent('text'), {
        signal: AbortSignal.timeout(20_000),
        fileName: 'a',
      })
      assert.deepEqual(findings, [])
    }
    assert.equal(server.countConnections(), 2)
    await adapter.close()
    server.close()
  })

  test('that damages its answers makes no content clean', async () => {
    const random = newRandom(7)
    const threat = 'ICAP/1.0 200 OK\r\nISTag: "t"\r\nX-Virus-ID: Found\r\nEncapsulated: null-body=0\r\n\r\n'
    const wholes = [threat, toMessage('<p>no</p>', { head: 'HTTP/1.1 403 Forbidden', more: 'X-Virus-ID: Found\r\n' })]
    let answer = ''
    const server = await startIcapServer((request, socket) => {
      if (isOptions(request)) return without204
      socket.end(answer, 'latin1')
      return undefined
    })
    const adapter = openClient(server.port)
    for (let round = 0; round < 400; round++) {
      answer = spoil(Buffer.from(wholes[round % 2] ?? ''), random).toString('latin1')
      const scan = adapter.scan(newContent('some content'), { signal: AbortSignal.timeout(20_000), fileName: 'a' })
      const result = await scan.catch((error) => {
        assert.ok(error instanceof EngineDown, String(error))
        return undefined
      })
      const isClean = result !== undefined && result.findings.length === 0 && result.doubts === undefined
      assert.ok(!isClean || /^[\r\n]*ICAP\/1\.\d 204/.test(answer), JSON.stringify(answer))
    }
    await adapter.close()
    server.close()
  })

  test('that closes while the next chunk is read has not answered, whatever it said before', async () => {
    for (const [said, chunks] of [
      ['', 3],
      [noContent, 2],
    ] as const) {
      const taken = Promise.withResolvers<Socket>()
      const server = await startIcapServer((request, socket) => {
        if (isOptions(request)) return optionsWith('Allow: 204', 'Connection: close')
        taken.resolve(socket.resume())
        return undefined
      }, true)
      const adapter = openClient(server.port)
      const whole = newContent('x'.repeat(chunks * 2 ** 18))
      let isReaderClosed = false
      const content = {
        ...whole,
        whole: undefined,
        isInMemory: false,
        async *read() {
          try {
            yield Buffer.alloc(2 ** 18, 'x')
            // The client has closed its side when the server sees the end.
            const socket = await taken.promise
            await new Promise((resolve) => socket.once('close', resolve).end(said))
            for (let chunk = 1; chunk < chunks; chunk++) yield Buffer.alloc(2 ** 18, 'x')
          } finally {
            isReaderClosed = true
          }
        },
      }
      await assert.rejects(adapter.scan(content, { signal, fileName: 'a' }), EngineDown, said)
      assert.ok(isReaderClosed)
      await adapter.close()
      server.close()
    }
  })

  test('that does not exist is down', async () => {
    const server = await startIcapServer(() => '')
    server.close()
    const adapter = openClient(server.port)
    await assert.rejects(
      adapter.scan(newContent('text'), { signal: AbortSignal.timeout(20_000), fileName: 'a' }),
      EngineDown,
    )
    await adapter.close()
  })
})
