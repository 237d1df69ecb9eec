import { type Connection, IncompleteRequest } from './connection.ts'
import {
  type Failure,
  type ListenerScan,
  type ListenerScans,
  newFailure,
  type OnFailure,
  toClamdReply,
  toErrorVerdict,
  toVerdict,
  type Verdict,
} from './listener-scan.ts'

type Deps = {
  scans: ListenerScans
  onFailure: OnFailure
  /** Returns the version of the engine, such as `ClamAV 1.4.6`. */
  findVersion(): string
  countLoad(): { connections: number; maxConnections: number; waiting: number }
}

const commandMs = 30_000
const supportedCommands = 'PING VERSION VERSIONCOMMANDS STATS INSTREAM IDSESSION END'
const fileCommands = ['SCAN', 'CONTSCAN', 'MULTISCAN', 'ALLMATCHSCAN', 'RAWSCAN', 'FILDES']
const operatorCommands = ['SHUTDOWN', 'RELOAD']
const longFailure = newFailure('UnsupportedCommand', 'The command is too long.')
const fileFailure = newFailure('UnsupportedCommand', 'Files of this machine are not scanned; use INSTREAM.')

/** Serves one client of clamd: a single command, or a session of numbered commands, one after the other. */
export async function serveClamd(connection: Connection, deps: Deps) {
  const parser = newClamdParser()
  const session = newSession(deps.onFailure)
  const { toLine, toVerdictLine } = session
  /** Sets the reply to a next command that cannot be served any more. */
  const expectCommand = (end: Terminator) =>
    connection.setFailureReply((failure) => session.toNextVerdictLine(failure, end))
  let stream: { content: ReturnType<typeof newStream>; end: Terminator } | undefined
  try {
    connection.expectWithin(commandMs)
    for await (const chunk of connection.chunks()) {
      for (const event of parser.push(chunk)) if (!(await handle(event))) return
      const last = session.isOpen() ? undefined : parser.takeBare()
      if (last !== undefined && !(await handle(last))) return
    }
    if (!parser.hasUnparsed()) return
    if (stream === undefined) expectCommand(parser.findTerminator())
    throw new IncompleteRequest()
  } finally {
    await stream?.content.abort()
  }

  /** Returns whether the connection stays open. */
  async function handle(event: ClamdEvent): Promise<boolean> {
    switch (event.kind) {
      case 'command':
        return runCommand(event)
      case 'content':
        return receive(event.bytes)
      case 'content-end':
        return finish()
      case 'too-long':
        await reply(toVerdictLine(longFailure, event.end), event.end)
        return false
    }
  }

  async function reply(line: string, end: Terminator): Promise<boolean> {
    await connection.send(line)
    expectCommand(end)
    connection.expectWithin(commandMs)
    return session.isOpen() && !connection.isStopping()
  }

  async function runCommand({ text, framed, end }: ClamdEvent & { kind: 'command' }): Promise<boolean> {
    if (!session.isOpen() && text === 'IDSESSION' && framed) {
      session.open()
      expectCommand(end)
      connection.expectWithin(commandMs)
      return true
    }
    if (session.isOpen() && text === 'END') return false
    session.countCommand()
    if (text === 'INSTREAM') {
      await begin(end)
      return true
    }
    const replyText = findReply(text, framed, deps)
    if (replyText !== undefined) return reply(toLine(replyText, end), end)
    // clamd, too, closes the connection after a command that it does not know.
    const unknown = session.isOpen() ? 'Command invalid inside IDSESSION. ERROR' : 'UNKNOWN COMMAND'
    await reply(toLine(unknown, end), end)
    return false
  }

  async function begin(end: Terminator) {
    connection.setBusy(true)
    connection.expectNothing()
    stream = { content: newStream(deps.scans), end }
    connection.setFailureReply((failure) => toVerdictLine(failure, end))
    await stream.content.begin()
    connection.expectContent()
  }

  async function receive(bytes: Buffer): Promise<boolean> {
    if (stream === undefined) return false
    const failure = await stream.content.write(bytes)
    if (failure === undefined) return true
    await reply(toVerdictLine(failure, stream.end), stream.end)
    return false
  }

  async function finish(): Promise<boolean> {
    if (stream === undefined) return false
    const { content, end } = stream
    connection.expectNothing()
    const verdict = await content.finish()
    stream = undefined
    const staysOpen = await reply(toVerdictLine(verdict, end), end)
    connection.noteVerdict()
    connection.setBusy(false)
    return staysOpen && !connection.isStopping()
  }
}

/** The last replies to clients of clamd, with the terminator that their first bytes ask for. */
export const toClamdReplies = (onFailure: OnFailure) => ({
  timeout: 'COMMAND READ TIMED OUT\n',
  fail: (failure: Failure, firstBytes?: Buffer): string =>
    `${toClamdReply(failure, onFailure)}${firstBytes === undefined ? '\n' : toTerminator(firstBytes)}`,
})

/** Numbers the commands of a session, and writes the numbers before their replies. */
function newSession(onFailure: OnFailure) {
  /** Number of the last command; undefined outside of a session. */
  let number: number | undefined
  const toLine = (text: string, end: Terminator) => `${number === undefined ? '' : `${number}: `}${text}${end}`
  return {
    isOpen: () => number !== undefined,
    open() {
      number = 0
    },
    countCommand() {
      if (number !== undefined) number++
    },
    toLine,
    toVerdictLine: (verdict: Verdict, end: Terminator) => toLine(toClamdReply(verdict, onFailure), end),
    /** The verdict on a command that has not arrived as a whole. */
    toNextVerdictLine: (verdict: Verdict, end: Terminator) =>
      `${number === undefined ? '' : `${number + 1}: `}${toClamdReply(verdict, onFailure)}${end}`,
  }
}

/** Returns the reply to a command other than INSTREAM, IDSESSION and END; undefined for an unknown command. */
function findReply(text: string, framed: boolean, deps: Deps): string | undefined {
  const [word = ''] = text.split(' ', 1)
  if (fileCommands.includes(word)) return toClamdReply(fileFailure, deps.onFailure, word)
  if (operatorCommands.includes(word)) return `${word}: Not allowed for clients. ERROR`
  if (text === 'PING') return 'PONG'
  if (text === 'VERSION') return deps.findVersion()
  if (text === 'VERSIONCOMMANDS' && framed) return `${deps.findVersion()}| COMMANDS: ${supportedCommands}`
  if (text === 'STATS' && framed) return toStats(deps.countLoad())
  return undefined
}

function toStats({ connections, maxConnections, waiting }: ReturnType<Deps['countLoad']>): string {
  const threads = `THREADS: live ${connections}  idle 0 max ${maxConnections} idle-timeout ${commandMs / 1000}`
  return `POOLS: 1\n\nSTATE: VALID PRIMARY\n${threads}\nQUEUE: ${waiting} items\nEND`
}

/** Scans the content of one INSTREAM command. Clients read nothing before they have sent all, so failures wait. */
function newStream(scans: ListenerScans) {
  let scan: ListenerScan | undefined
  let failure: Verdict | undefined
  let bytes = 0

  return {
    async begin() {
      try {
        scan = await scans.begin()
      } catch (error) {
        failure = toErrorVerdict(error)
      }
    },
    /** Returns a verdict when the rest of oversized content is not needed. clamd, too, closes the connection then. */
    async write(chunk: Buffer): Promise<Verdict | undefined> {
      bytes += chunk.length
      if (failure === undefined) {
        try {
          await scan?.write(chunk)
          return undefined
        } catch (error) {
          failure = toErrorVerdict(error)
          await scan?.abort()
        }
      }
      return bytes <= scans.maxBytes ? undefined : failure
    },
    async finish(): Promise<Verdict> {
      const verdict = failure ?? (await finishScan(scan))
      await scan?.abort()
      return verdict
    },
    abort: async () => scan?.abort(),
  }
}

async function finishScan(scan: ListenerScan | undefined): Promise<Verdict> {
  try {
    if (scan === undefined) throw new Error('The scan neither started nor failed')
    return toVerdict((await scan.finish(null))?.scan)
  } catch (error) {
    return toErrorVerdict(error)
  }
}

/** The byte that ends a command, and its reply. */
export type Terminator = '\0' | '\n'

export type ClamdEvent =
  /** A command without prefix and terminator. `framed`: it had a prefix, which some commands need. */
  | { kind: 'command'; text: string; framed: boolean; end: Terminator }
  /** A part of the content that follows INSTREAM. */
  | { kind: 'content'; bytes: Buffer }
  | { kind: 'content-end' }
  /** A command over the length limit: the parser cannot find where the next one starts. */
  | { kind: 'too-long'; end: Terminator }

const maxCommandBytes = 4096
const lengthBytes = 4
const bareCommands = ['PING', 'VERSION']
const emptyBuffer: Buffer = Buffer.alloc(0)

/**
 * Parses the commands of a clamd client: `zCOMMAND\0`, `nCOMMAND\n` or `COMMAND\n`. After INSTREAM follow chunks, each
 * preceded by its length; length 0 is the end. Unlike clamd, the parser accepts INSTREAM without a prefix, too.
 */
export function newClamdParser() {
  let state: 'command' | 'length' | 'content' = 'command'
  let unread = emptyBuffer
  let remainingBytes = 0

  return {
    /** Yields the events of a chunk. It parses on only after the caller has handled the events so far. */
    *push(chunk: Buffer): Generator<ClamdEvent> {
      let rest = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
      unread = emptyBuffer
      while (rest.length > 0) {
        if (state === 'content') {
          const bytes = rest.subarray(0, remainingBytes)
          rest = rest.subarray(bytes.length)
          remainingBytes -= bytes.length
          if (remainingBytes === 0) state = 'length'
          yield { kind: 'content', bytes }
        } else if (state === 'length') {
          if (rest.length < lengthBytes) break
          remainingBytes = rest.readUInt32BE()
          rest = rest.subarray(lengthBytes)
          state = remainingBytes === 0 ? 'command' : 'content'
          if (remainingBytes === 0) yield { kind: 'content-end' }
        } else {
          const end = toTerminator(rest)
          const at = rest.indexOf(end)
          if (at > maxCommandBytes || (at === -1 && rest.length > maxCommandBytes)) {
            yield { kind: 'too-long', end }
            return
          }
          if (at === -1) break
          const command = toCommand(rest.toString('latin1', 0, at), end)
          rest = rest.subarray(at + 1)
          if (command.text === 'INSTREAM') state = 'length'
          yield command
        }
      }
      // The rest is copied, because receivers of content events may keep the memory of the chunk.
      unread = rest.length === 0 ? emptyBuffer : Buffer.from(rest)
    },
    /** Whether there are bytes of a command or its content that has not arrived as a whole. */
    hasUnparsed: () => unread.length > 0 || state !== 'command',
    /** Returns the terminator that the command of the unparsed bytes asks for. */
    findTerminator: () => toTerminator(unread),
    /** Returns a command that arrived without terminator. clamd answers these at once, and some clients rely on it. */
    takeBare(): ClamdEvent | undefined {
      if (state !== 'command' || !bareCommands.some((text) => unread.equals(Buffer.from(text)))) return undefined
      const text = unread.toString('latin1')
      unread = emptyBuffer
      return { kind: 'command', text, framed: false, end: '\n' }
    },
  }
}

const toTerminator = (bytes: Buffer): Terminator => (bytes[0] === 0x7a ? '\0' : '\n')

function toCommand(line: string, end: Terminator): ClamdEvent & { kind: 'command' } {
  const framed = line.startsWith('z') || line.startsWith('n')
  return { kind: 'command', text: framed ? line.slice(1) : line.replace(/\r$/, ''), framed, end }
}
