import { after, before } from 'node:test'

type Closable = { close(): unknown } | { stop(): unknown }

/**
 * Opens something before the tests of a suite and closes it after them, also when a later `before` hook fails. The
 * returned object is empty until then.
 */
export function openBefore<Opened extends object>(open: () => Promise<Opened>): Opened {
  const opened = {} as Opened
  before(async () => {
    Object.assign(opened, await open())
  })
  after(async () => {
    const closable = opened as Partial<Closable>
    if ('close' in closable) await closable.close?.()
    else if ('stop' in closable) await closable.stop?.()
  })
  return opened
}
