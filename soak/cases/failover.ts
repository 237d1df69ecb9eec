import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import { requirePrograms } from '../../scripts/required-programs.ts'
import type { Case } from '../case.ts'
import { openPatroni, type Patroni } from '../patroni.ts'
import { underLoad } from '../under-load.ts'

type Node = Awaited<ReturnType<Patroni['findLeader']>>
type Event = {
  name: string
  database: string
  /** Takes the primary away. */
  begin(patroni: Patroni, primary: Node): void | Promise<void>
  /** Brings the old primary back, while the service works with the new one. */
  end(patroni: Patroni, old: Node): void
}

const events: Event[] = [
  {
    name: 'killed',
    database: 'killed',
    begin: (patroni, primary) => patroni.kill(primary),
    end: (patroni, old) => patroni.restart(old),
  },
  {
    name: 'frozen, and thawed after the promotion',
    database: 'frozen',
    begin: (patroni, primary) => patroni.freeze(primary),
    end: (patroni, old) => patroni.thaw(old),
  },
  {
    name: 'switched over',
    database: 'switched',
    begin: (patroni, primary) => patroni.switchOver(primary),
    end: () => {},
  },
]

/** The longest time from the promotion until a scan is answered. */
const maxBackSeconds = 15

export const soak: Case = {
  about: 'the primary of three PostgreSQL nodes under Patroni is killed, frozen and switched over',
  async run() {
    requirePrograms('patroni', 'patronictl', 'etcd')
    const patroni = await openPatroni()
    try {
      const rows: string[] = []
      for (const event of events) {
        const row = await measure(patroni, event)
        rows.push(row)
        process.stdout.write(`${row}\n`)
      }
      return rows.join('; ')
    } finally {
      patroni.close()
    }
  },
}

async function measure(patroni: Patroni, event: Event): Promise<string> {
  await patroni.waitUntilHealthy()
  const url = await patroni.createDatabase(event.database)
  let seconds = Number.NaN
  let acknowledged = () => 0
  const observed = await underLoad({
    settings: { ASSAY_DATABASE_URL: url },
    checksWebhooks: true,
    async disturb(_installation, load, scans) {
      acknowledged = () => load.orders.filter(({ id }) => id !== undefined).length + scans.count()
      const primary = await patroni.findLeader()
      const beganAt = Date.now()
      const begun = event.begin(patroni, primary)
      const promotedAt = await patroni.waitForPromotion(primary, beganAt)
      await waitUntil('a scan to be answered', () => scans.listTimes().some((ms) => ms >= promotedAt), 60_000)
      seconds = (Math.min(...scans.listTimes().filter((ms) => ms >= promotedAt)) - promotedAt) / 1000
      const awaySeconds = Math.round((promotedAt - beganAt) / 1000)
      await begun
      event.end(patroni, primary)
      // The old primary returns while clients go on, so that writes which it might still accept are noticed.
      await pause(10_000)
      await patroni.waitUntilHealthy()
      return `promoted after ${awaySeconds} s, answered ${seconds.toFixed(1)} s later`
    },
  })
  assert(seconds <= maxBackSeconds, `answered ${seconds} s after the promotion`)
  // underLoad throws if an acknowledged request was lost or charged twice.
  return `${event.name}: ${acknowledged()} acknowledged, 0 lost, 0 charged twice, ${observed}`
}
