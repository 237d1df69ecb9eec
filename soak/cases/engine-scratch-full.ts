import assert from 'node:assert/strict'
import { eicarMember, newTar } from '../../acceptance/support/archives.ts'
import { makeCaller } from '../../acceptance/support/submitting.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'clamd has 64 MB to unpack in, and gets four infected archives of 40 MB at once, twice',
  run: () =>
    underLoad({
      settings: { ASSAY_SCRATCH_MB: '64' },
      async disturb({ url, operate }) {
        const account = (await operate('accounts', 'create', '--name', 'large', '--rate', '1000000/1m')) as {
          api_key: string
        }
        const caller = makeCaller(url, account.api_key)
        const archive = newTar([{ name: 'filler', data: Buffer.alloc(40_000_000, 'x') }, eicarMember])
        const answers = new Map<string, number>()
        for (let round = 0; round < 2; round++) {
          await Promise.all(
            Array.from({ length: 4 }, async (_, n) => {
              // New content, because the verdict cache must not answer.
              const content = Buffer.concat([archive, Buffer.from(`${round} ${n}`)])
              const answer = await caller.sendFile('malware', 'scan', content).catch(() => undefined)
              const status = /"status":"?(\w+)/.exec(answer?.text ?? '')?.[1]
              assert.notEqual(status, 'clean', 'a false clean')
              const what = `${answer?.status ?? 'none'} ${status ?? ''}`.trim()
              answers.set(what, (answers.get(what) ?? 0) + 1)
            }),
          )
        }
        return `large archives: ${toText(answers)}`
      },
    }),
}
