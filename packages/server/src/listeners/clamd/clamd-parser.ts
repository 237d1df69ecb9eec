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

export const toTerminator = (bytes: Buffer): Terminator => (bytes[0] === 0x7a ? '\0' : '\n')

function toCommand(line: string, end: Terminator): ClamdEvent & { kind: 'command' } {
  const framed = line.startsWith('z') || line.startsWith('n')
  return { kind: 'command', text: framed ? line.slice(1) : line.replace(/\r$/, ''), framed, end }
}
