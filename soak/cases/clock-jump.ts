import { setTimeout as pause } from 'node:timers/promises'
import { openFakeClock, toRunner } from '../../acceptance/support/faketime.ts'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { underLoad } from '../under-load.ts'

/** Changes the wall clock only: the monotonic clock of timers does not jump on a real machine either. */
export const soak: Case = {
  about: 'the clock of the service jumps two hours ahead, then four back; that of PostgreSQL does not (libfaketime)',
  async run() {
    const clock = openFakeClock('+0')
    try {
      return await withDatabase((proxy) =>
        underLoad({
          settings: { ASSAY_DATABASE_URL: proxy.url },
          under: toRunner(clock),
          async disturb({ url }) {
            clock.set('+2h')
            await pause(8000)
            const ahead = await readHours(url)
            clock.set('-2h')
            await pause(8000)
            const behind = await readHours(url)
            clock.set('+0')
            return `the service was ${ahead} and then ${behind} hours off`
          },
        }),
      )
    } finally {
      clock.remove()
    }
  },
}

/** Reads the time of the service from the Date header of a response. */
async function readHours(url: string): Promise<number> {
  const answer = await fetch(`${url}/livez`)
  await answer.body?.cancel()
  return Math.round((Date.parse(answer.headers.get('date') ?? '') - Date.now()) / 3_600_000)
}
