import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import type { Case } from '../case.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'PostgreSQL is killed three times, and stopped with SIGINT three times',
  run: () =>
    underLoad({
      async disturb({ findPostmaster }) {
        for (const signal of ['SIGKILL', 'SIGINT', 'SIGKILL', 'SIGINT', 'SIGKILL', 'SIGINT'] as const) {
          await waitUntil('the database to run', () => findPostmaster() !== undefined, 60_000)
          process.kill(findPostmaster() ?? 0, signal)
          await pause(5000)
        }
        return undefined
      },
    }),
}
