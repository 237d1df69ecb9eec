import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { withDatabase } from '../database.ts'
import { fakeTimeLibrary } from '../fake-time.ts'
import { underLoad } from '../under-load.ts'

/** Changes the wall clock only: the monotonic clock of timers does not jump on a real machine either. */
export const soak: Case = {
  about: 'the clock of the service jumps two hours ahead, then four back; that of PostgreSQL does not (libfaketime)',
  async run() {
    if (!existsSync(fakeTimeLibrary)) throw new Error('Install faketime first: apt-get install faketime')
    const dir = mkdtempSync(join(tmpdir(), 'assay-soak-clock-'))
    const offset = join(dir, 'offset')
    writeFileSync(offset, '+0')
    try {
      return await withDatabase((proxy) =>
        underLoad({
          settings: { ASSAY_DATABASE_URL: proxy.url },
          under: [
            'env',
            `LD_PRELOAD=${fakeTimeLibrary}`,
            `FAKETIME_TIMESTAMP_FILE=${offset}`,
            'FAKETIME_NO_CACHE=1',
            'FAKETIME_DONT_FAKE_MONOTONIC=1',
            'DONT_FAKE_MONOTONIC=1',
          ],
          async disturb({ url }) {
            writeFileSync(offset, '+2h')
            await pause(8000)
            const ahead = await readHours(url)
            writeFileSync(offset, '-2h')
            await pause(8000)
            const behind = await readHours(url)
            writeFileSync(offset, '+0')
            return `the service was ${ahead} and then ${behind} hours off`
          },
        }),
      )
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

/** Reads the time of the service from the Date header of a response. */
async function readHours(url: string): Promise<number> {
  const answer = await fetch(`${url}/livez`)
  await answer.body?.cancel()
  return Math.round((Date.parse(answer.headers.get('date') ?? '') - Date.now()) / 3_600_000)
}
