import { after, before } from 'node:test'

type Closable = { close(): unknown } | { stop(): unknown }

/** Functions that close what is open now, in the order of opening. */
const closers: (() => Promise<void>)[] = []

/**
 * Opens something before the tests of a suite and closes it after them, last opened first, also when a later `before`
 * hook fails. The returned object is empty until then.
 */
export function openBefore<Opened extends object>(open: () => Promise<Opened>): Opened {
  const opened = {} as Opened
  const close = async () => {
    const closable = opened as Partial<Closable>
    if ('close' in closable) await closable.close?.()
    else if ('stop' in closable) await closable.stop?.()
  }
  before(async () => {
    Object.assign(opened, await open())
    closers.push(close)
  })
  // Node runs these hooks in the order of their registration.
  after(async () => {
    while (closers.includes(close)) await closers.pop()?.()
  })
  return opened
}
