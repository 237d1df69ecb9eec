import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCaller, toId } from '../../acceptance/support/submitting.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about: 'the only name server does not answer; 40 downloads and 20 webhooks by name, beside the load',
  async run() {
    const dir = mkdtempSync(join(tmpdir(), 'assay-soak-dns-'))
    const dead = join(dir, 'resolv.conf')
    // Addresses that RFC 5737 reserves: packets to them are lost without an error.
    writeFileSync(dead, 'nameserver 192.0.2.1\n')
    try {
      return await underLoad({
        under: ['unshare', '--mount', 'sh', '-c', `mount --bind ${dead} /etc/resolv.conf && exec "$0" "$@"`],
        async disturb({ url, operate }) {
          const account = (await operate('accounts', 'create', '--name', 'names', '--rate', '1000000/1m')) as {
            api_key: string
          }
          const caller = makeCaller(url, account.api_key)
          const outcomes = new Map<string, number>()
          const count = (text: string) => {
            const { status, signals } = JSON.parse(text) as { status: string; signals: string[] | null }
            assert.notEqual(status, 'clean', 'content that was not downloaded is not clean')
            const what = `${status} ${signals ?? ''}`
            outcomes.set(what, (outcomes.get(what) ?? 0) + 1)
          }
          const startedAt = performance.now()
          await Promise.all([
            ...Array.from({ length: 20 }, async (_, n) => {
              count((await caller.sendUrl('malware', 'scan', `http://scan-${n}.example.com/`)).text)
            }),
            ...Array.from({ length: 20 }, async (_, n) => {
              const fields = { callback_url: `http://hook-${n}.example.com/` }
              const id = toId(await caller.sendUrl('malware', 'submit', `http://submit-${n}.example.com/`, fields))
              count(JSON.stringify(await caller.complete('malware', id)))
            }),
          ])
          return `downloads by name: ${toText(outcomes)} within ${Math.round((performance.now() - startedAt) / 1000)} s`
        },
      })
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
}
