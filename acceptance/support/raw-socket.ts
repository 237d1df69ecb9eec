import { connect, type Socket } from 'node:net'

/** HTTP as bytes, for requests that no client library would send. */

/** Like Answer of http.ts, without the path, because the request may have had none. */
export type RawAnswer = { status: number; headers: Record<string, string>; text: string }

export type RawConnection = {
  /** Resolves when the bytes are handed to the system; a connection that the service has closed discards them. */
  send(bytes: string | Buffer): Promise<void>
  /** Reads the next response, including interim ones such as 100. The response to HEAD has no body. */
  readAnswer(isHead?: boolean): Promise<RawAnswer>
  /** Reads the remaining responses until the service closes the connection. */
  readToEnd(): Promise<RawAnswer[]>
  /** Closes the connection. */
  leave(): void
  /** Resets the connection. */
  reset(): void
}

const deadlineMs = 10_000

/** `localAddress` is the address of the client, for tests that must not share one with others. */
export async function openRaw(url: string, localAddress = ''): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ...(localAddress === '' ? {} : { localAddress }) })
  const received = collect(socket)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))

  const readAnswer = async (isHead = false) => {
    const { answer, length } = await received.until((bytes) => findAnswer(bytes, isHead), 'an answer')
    received.drop(length)
    return answer
  }

  return {
    send: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
    readAnswer,
    async readToEnd() {
      await received.until((_bytes, closed) => (closed ? true : undefined), 'the service to hang up')
      const answers: RawAnswer[] = []
      while (received.length() > 0) answers.push(await readAnswer())
      return answers
    },
    leave: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  }
}

/** Sends bytes on a new connection and returns all responses until the service closes it. */
export async function sendRaw(url: string, ...pieces: (string | Buffer)[]): Promise<RawAnswer[]> {
  const connection = await openRaw(url)
  try {
    for (const piece of pieces) await connection.send(piece)
    return await connection.readToEnd()
  } finally {
    connection.leave()
  }
}

/** Sends bytes on a new connection and returns the only response. */
export async function sendRawOnce(url: string, ...pieces: (string | Buffer)[]): Promise<RawAnswer> {
  const answers = await sendRaw(url, ...pieces)
  if (answers.length !== 1) throw new Error(`Expected one answer, got ${answers.length}: ${JSON.stringify(answers)}`)
  return answers[0] as RawAnswer
}

function collect(socket: Socket) {
  let bytes = Buffer.alloc(0)
  let closed = false
  let wake = () => {}
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk])
    wake()
  })
  // A reset also ends the connection; the bytes before it count.
  socket.on('error', () => {})
  for (const event of ['end', 'close']) {
    socket.on(event, () => {
      closed = true
      wake()
    })
  }

  return {
    length: () => bytes.length,
    drop: (length: number) => {
      bytes = bytes.subarray(length)
    },
    async until<T>(find: (bytes: Buffer, closed: boolean) => T | undefined, what: string): Promise<T> {
      const deadline = Date.now() + deadlineMs
      for (;;) {
        const found = find(bytes, closed)
        if (found !== undefined) return found
        if (closed) throw new Error(`The service hung up while waiting for ${what}; got ${JSON.stringify(`${bytes}`)}`)
        if (Date.now() >= deadline) throw new Error(`Waited too long for ${what}; got ${JSON.stringify(`${bytes}`)}`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, deadline - Date.now())
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
  }
}

function findAnswer(bytes: Buffer, isHead: boolean): { answer: RawAnswer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(statusLine)?.[1])
  if (Number.isNaN(status)) throw new Error(`Not an answer: ${statusLine}`)
  const headers = Object.fromEntries(lines.map((line) => [nameOf(line), line.slice(line.indexOf(':') + 1).trim()]))
  if (headers['transfer-encoding'] !== undefined) throw new Error('Chunked answers are not understood here')
  const bodyStart = headEnd + 4
  const length =
    bodyStart +
    (isHead || status < 200 || status === 204 || status === 304 ? 0 : Number(headers['content-length'] ?? 0))
  if (bytes.length < length) return undefined
  return { answer: { status, headers, text: bytes.toString('utf8', bodyStart, length) }, length }
}

const nameOf = (line: string) => line.slice(0, line.indexOf(':')).toLowerCase()

export const toStatuses = (answers: RawAnswer[]) => answers.map(({ status }) => status)
