import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Stores } from '../compose/stores.ts'
import { newCommand, newInterruptSignal, print, toTable, withStores } from './terminal.ts'

const minuteMs = 60_000
const everyMs = 1000

export function makeJobsCommand(): Command {
  return newCommand('jobs', 'show the queues of background scans and webhooks: length, age and throughput')
    .option('--watch', 'refresh every second until Ctrl-C')
    .action(async ({ watch }: { watch?: true }, command: Command) => {
      await withStores(async (stores) => {
        const stopped = watch ? newInterruptSignal() : AbortSignal.abort()
        do {
          const seen = await look(stores)
          // On a terminal, clear the screen so that the table stays in place.
          if (watch && process.stdout.isTTY && !command.opts().json) process.stdout.write('\x1b[H\x1b[J')
          print(command, seen, toText(seen))
          await sleep(everyMs, undefined, { signal: stopped }).catch(() => {})
        } while (!stopped.aborted)
      })
    })
}

async function look({ jobs, deliveries, scans }: Stores) {
  const now = Date.now()
  const toAge = (since: Date | undefined) => (since === undefined ? 0 : Math.max(0, now - since.getTime()) / 1000)
  const [queue, webhooks, completed] = await Promise.all([
    jobs.countJobs(),
    deliveries.countDeliveries(),
    scans.countCompleted(new Date(now - minuteMs)),
  ])
  return {
    waiting: queue.waiting,
    running: queue.running,
    oldest_seconds: toAge(queue.oldestAt),
    settled_last_minute: completed,
    webhooks_waiting: webhooks.waiting,
    webhooks_late_seconds: toAge(webhooks.oldestDueAt),
  }
}

type Seen = Awaited<ReturnType<typeof look>>

const toText = (seen: Seen) =>
  toTable(
    ['', 'waiting', 'running', 'oldest', 'last minute'],
    [
      [
        'background scans',
        seen.waiting,
        seen.running,
        toSeconds(seen.oldest_seconds),
        toRate(seen.settled_last_minute),
      ],
      ['webhooks', seen.webhooks_waiting, null, toSeconds(seen.webhooks_late_seconds), null],
    ],
  )

const toSeconds = (seconds: number) => `${seconds.toFixed(1)} s`
const toRate = (count: number) => `${count} (${(count / 60).toFixed(1)}/s)`
