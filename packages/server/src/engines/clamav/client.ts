import { availableParallelism } from 'node:os'
import type { Content } from '../../domain/content/content.ts'
import { askClamd, type ClamdAddress, streamToClamd } from './connection.ts'
import { makeSessions } from './sessions.ts'

/** Up to here a kept connection pays; above, the scan itself takes so long that it makes no difference. */
const sessionBytes = 256 * 1024

/** More than our clamd has threads (compose/malware.ts): when one of those is free, the next scan lies there already. */
export const sessionCount = Math.max(16, 4 * availableParallelism())

/** Speaks to clamd. Answers come back as they are: see `toReport` for what they mean. */
export function makeClamdClient(deps: { address: ClamdAddress }) {
  const sessions = makeSessions({ address: deps.address, count: sessionCount })

  return {
    scan(content: Content, signal: AbortSignal): Promise<string> {
      const { whole } = content
      return whole !== undefined && whole.length <= sessionBytes
        ? sessions.scan(whole, signal)
        : streamToClamd(deps.address, content, signal)
    },
    /** A few bytes, to see what it says of them. */
    probe: (bytes: Buffer, timeoutMs: number) => sessions.scan(bytes, AbortSignal.timeout(timeoutMs)),
    ask: (command: 'PING' | 'VERSION' | 'RELOAD', timeoutMs: number) =>
      askClamd(deps.address, command, AbortSignal.timeout(timeoutMs)),
    close: sessions.close,
  }
}

export type ClamdClient = ReturnType<typeof makeClamdClient>
