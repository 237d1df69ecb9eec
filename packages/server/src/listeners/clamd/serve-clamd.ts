import type { Line } from '../connection.ts'
import { type ListenerScan, type ListenerScans, maxBytes } from '../listener-scan.ts'
import { type ClamdEvent, newClamdParser, type Terminator } from './clamd-parser.ts'
import { toFaultReply, toScanReply } from './reply.ts'

export type ClamdDeps = {
  scans: ListenerScans
  /** `ClamAV 1.4.6` */
  findVersion(): string
  countLoad(): { connections: number; maxConnections: number; waiting: number }
}

const commandMs = 30_000
const served = 'PING VERSION VERSIONCOMMANDS STATS INSTREAM IDSESSION END'
const ofFiles = ['SCAN', 'CONTSCAN', 'MULTISCAN', 'ALLMATCHSCAN', 'RAWSCAN', 'FILDES']
const ofOperators = ['SHUTDOWN', 'RELOAD']

/** Content under way. A fault is told at its end, because clients read nothing before they have sent all. */
type Stream = { scan: ListenerScan | undefined; fault: string | undefined; bytes: number; end: Terminator }

/** One client of clamd: a single command, or a session of numbered ones, one after the other. */
export async function serveClamd(line: Line, deps: ClamdDeps) {
  const parser = newClamdParser()
  /** Of the last command of a session. */
  let number: number | undefined
  let stream: Stream | undefined
  try {
    line.expectWithin(commandMs)
    for await (const chunk of line.chunks()) {
      for (const event of parser.push(chunk)) if (!(await take(event))) return
      const last = number === undefined ? parser.takeBare() : undefined
      if (last !== undefined && !(await take(last))) return
    }
  } finally {
    await stream?.scan?.abort()
  }

  /** Whether the client may say more. */
  async function take(event: ClamdEvent): Promise<boolean> {
    switch (event.kind) {
      case 'command':
        return run(event)
      case 'content':
        return receive(event.bytes)
      case 'content-end':
        return finish()
      case 'too-long':
        return false
    }
  }

  async function answer(text: string, end: Terminator): Promise<boolean> {
    await line.send(`${number === undefined ? '' : `${number}: `}${text}${end}`)
    line.expectWithin(commandMs)
    return number !== undefined && !line.isStopping()
  }

  async function run({ text, framed, end }: ClamdEvent & { kind: 'command' }): Promise<boolean> {
    if (number === undefined && text === 'IDSESSION' && framed) {
      number = 0
      line.expectWithin(commandMs)
      return true
    }
    if (number !== undefined) {
      if (text === 'END') return false
      number++
    }
    if (text === 'INSTREAM') {
      await begin(end)
      return true
    }
    const reply = findReply(text, framed)
    if (reply !== undefined) return answer(reply, end)
    // A client that says what cannot be understood is not listened to any further, as clamd has it.
    await answer(number === undefined ? 'UNKNOWN COMMAND' : 'Command invalid inside IDSESSION. ERROR', end)
    return false
  }

  function findReply(text: string, framed: boolean): string | undefined {
    const [word = ''] = text.split(' ', 1)
    if (ofFiles.includes(word)) return `${word}: Files of this machine are not scanned; use INSTREAM. ERROR`
    if (ofOperators.includes(word)) return `${word}: Not for clients. ERROR`
    if (text === 'PING') return 'PONG'
    if (text === 'VERSION') return deps.findVersion()
    if (text === 'VERSIONCOMMANDS' && framed) return `${deps.findVersion()}| COMMANDS: ${served}`
    if (text === 'STATS' && framed) return toStats(deps.countLoad())
    return undefined
  }

  async function begin(end: Terminator) {
    line.setBusy(true)
    line.expectNothing()
    const begun: Stream = { scan: undefined, fault: undefined, bytes: 0, end }
    stream = begun
    try {
      begun.scan = await deps.scans.begin()
    } catch (error) {
      begun.fault = toFaultReply(error)
    }
    line.expectContent()
  }

  async function receive(bytes: Buffer): Promise<boolean> {
    if (stream === undefined) return false
    stream.bytes += bytes.length
    if (stream.fault === undefined) {
      try {
        await stream.scan?.write(bytes)
        return true
      } catch (error) {
        stream.fault = toFaultReply(error)
        await stream.scan?.abort()
      }
    }
    if (stream.bytes <= maxBytes) return true
    // Nobody wants to read the rest: clamd, too, hangs up here.
    await answer(stream.fault, stream.end)
    return false
  }

  async function finish(): Promise<boolean> {
    if (stream === undefined) return false
    const { scan, end } = stream
    line.expectNothing()
    const reply = stream.fault ?? (await findVerdict(scan))
    stream = undefined
    await scan?.abort()
    const goesOn = await answer(reply, end)
    line.setBusy(false)
    return goesOn && !line.isStopping()
  }
}

async function findVerdict(scan: ListenerScan | undefined): Promise<string> {
  try {
    if (scan === undefined) throw new Error('A scan neither began nor failed')
    return toScanReply((await scan.finish(null))?.scan)
  } catch (error) {
    return toFaultReply(error)
  }
}

function toStats({ connections, maxConnections, waiting }: ReturnType<ClamdDeps['countLoad']>): string {
  const threads = `THREADS: live ${connections}  idle 0 max ${maxConnections} idle-timeout ${commandMs / 1000}`
  return `POOLS: 1\n\nSTATE: VALID PRIMARY\n${threads}\nQUEUE: ${waiting} items\nEND`
}
