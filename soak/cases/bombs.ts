import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { eicar, newGzipOf, newZeros, newZip } from '../../acceptance/support/archives.ts'
import { makeCaller } from '../../acceptance/support/submitting.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { withInstallation } from '../installation.ts'

const scans = 500
const clients = 4

export const soak: Case = {
  about: `one account sends three bombs at once, again and again, while another one scans ${scans} ordinary files`,
  run: () =>
    withInstallation({}, async ({ url, operate }) => {
      const createCaller = async (name: string) => {
        const account = await operate(
          'accounts',
          'create',
          '--name',
          name,
          '--rate',
          '1000000/1m',
          '--plan',
          'unlimited',
        )
        return makeCaller(url, (account as { api_key: string }).api_key)
      }
      const attacker = await createCaller('attacker')
      const customer = await createCaller('customer')
      const controller = new AbortController()
      const bombs = new Map<string, number>()
      const times: number[] = []

      async function throwBombs(bomb: Buffer) {
        while (!controller.signal.aborted) {
          // New content, because the verdict cache must not answer.
          const answer = await attacker.sendFile('malware', 'scan', Buffer.concat([bomb, randomBytes(8)]))
          const status = /"status":"(\w+)"/.exec(answer.text)?.[1] ?? ''
          assert.notEqual(status, 'clean', answer.text)
          const what = `${answer.status} ${status}`.trim()
          bombs.set(what, (bombs.get(what) ?? 0) + 1)
          if (answer.status !== 201) await pause(500)
        }
      }

      async function scan(n: number) {
        const isBad = n % 5 === 0
        const content = newContent(n, isBad)
        const startedAt = performance.now()
        const answer = await customer.sendFile('malware', 'scan', content)
        times.push(performance.now() - startedAt)
        assert.equal(answer.status, 201, answer.text)
        assert.match(answer.text, isBad ? /"status":"threat"/ : /"status":"clean"/)
      }

      const zeros = newZeros(1200)
      const nested = newZip(
        Array.from({ length: 16 }, (_, n) => ({ name: `${n}.zip`, data: newZip([{ name: 'a', ...zeros }]) })),
      )
      const attacks = [newGzipOf(zeros), nested, newZip([{ name: 'a', data: newGzipOf(zeros) }])].map(throwBombs)
      let next = 0
      const work = async () => {
        for (let n = next++; n < scans; n = next++) await scan(n)
      }
      try {
        await Promise.race([Promise.all(Array.from({ length: clients }, work)), Promise.all(attacks)])
      } finally {
        controller.abort()
        await Promise.allSettled(attacks)
      }
      await Promise.all(attacks)
      assert.equal(times.length, scans)
      return `${scans} scans without a failure, longest ${Math.round(Math.max(...times))} ms; bombs: ${toText(bombs)}`
    }),
}

/** Small and larger files, every other one in a zip, each one new. */
function newContent(n: number, isBad: boolean): Buffer {
  const bytes = n % 3 === 0 ? 200_000 : 2000
  const data = isBad ? Buffer.concat([eicar, Buffer.alloc(n % 60, ' ')]) : randomBytes(bytes)
  return n % 2 === 0 ? newZip([{ name: randomBytes(8).toString('hex'), data }]) : data
}
