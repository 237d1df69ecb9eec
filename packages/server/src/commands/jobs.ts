import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { readQueues } from '../compose/monitoring.ts'
import { newCommand, newInterruptSignal, print, toTable, withStores } from './terminal.ts'

const everyMs = 1000

export function makeJobsCommand(): Command {
  return newCommand('jobs', 'show the queues of background scans and webhooks: length, age and throughput')
    .option('--watch', 'refresh every second until Ctrl-C')
    .action(async ({ watch }: { watch?: true }, command: Command) => {
      await withStores(async (stores) => {
        const stopped = watch ? newInterruptSignal() : AbortSignal.abort()
        do {
          const queues = await readQueues(stores)
          // On a terminal, clear the screen so that the table stays in place.
          if (watch && process.stdout.isTTY && !command.opts().json) process.stdout.write('\x1b[H\x1b[J')
          print(command, toJson(queues), toText(queues))
          await sleep(everyMs, undefined, { signal: stopped }).catch(() => {})
        } while (!stopped.aborted)
      })
    })
}

type Queues = Awaited<ReturnType<typeof readQueues>>

const toText = ({ scans, webhooks }: Queues) =>
  toTable(
    ['', 'waiting', 'running', 'oldest', 'last minute'],
    [
      [
        'background scans',
        scans.waiting,
        scans.running,
        toSeconds(scans.oldest_seconds),
        toRate(scans.settled_last_minute),
      ],
      ['webhooks', webhooks.waiting, null, toSeconds(webhooks.late_seconds), null],
    ],
  )

const toJson = ({ scans, webhooks }: Queues) => ({
  ...scans,
  webhooks_waiting: webhooks.waiting,
  webhooks_late_seconds: webhooks.late_seconds,
})

const toSeconds = (seconds: number) => `${seconds.toFixed(1)} s`
const toRate = (count: number) => `${count} (${(count / 60).toFixed(1)}/s)`
