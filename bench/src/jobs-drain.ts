import { setTimeout as sleep } from 'node:timers/promises'
import type { Setting } from './jobs-setting.ts'
import { forgetPeak, readMegabytes, readPeakMegabytes } from './processes.ts'

export type Queue = { count: number; lastId: string; since: Date; perSecond: number }
/** Megabytes of the service: before, and the most it held meanwhile. */
export type Drained = { perSecond: number; beforeMegabytes: number; peakMegabytes: number }

/** A queue of `count` jobs of 1 KB, no two the same, and how fast they were accepted. The worker is held. */
export async function fillQueue(setting: Setting, size: { count: number; connections: number }): Promise<Queue> {
  const { url, headers } = setting.service
  const since = new Date()
  const { perSecond, lastId } = await setting.load.run({ url, headers, bytes: 1024, ...size })
  return { count: size.count, lastId, since, perSecond }
}

/** Lets the worker go, until the last job is completed. */
export async function drainQueue(setting: Setting, { count, lastId, since }: Queue): Promise<Drained> {
  const { service, hold } = setting
  const beforeMegabytes = readMegabytes(service.pid)
  forgetPeak(service.pid)
  const start = performance.now()
  hold.release()
  await whenEmpty(setting, lastId)
  const seconds = (performance.now() - start) / 1000
  const peakMegabytes = readPeakMegabytes(service.pid)
  await checkCompleted(setting, count, since)
  return { perSecond: count / seconds, beforeMegabytes, peakMegabytes }
}

/** A queue that is being worked on already is none. */
export async function checkHeld({ pool }: Setting, { count }: Queue) {
  const { rows } = await pool.query<{ waiting: string }>(
    'select count(*) as waiting from jobs where held_until is null',
  )
  const waiting = Number(rows[0]?.waiting)
  // One of those that hold the worker found no place, and waits as well.
  if (waiting !== count + 1) throw new Error(`${waiting} jobs wait where ${count} were submitted`)
}

/** Waits for the last one, which costs the service nothing, and then for the few that end after it. */
async function whenEmpty({ service, pool }: Setting, lastId: string) {
  const [header = ''] = service.headers
  const ask = async () => {
    const url = new URL(`/v1/malware/${lastId}?wait=30`, service.url)
    const answer = await fetch(url, { headers: [header.split(': ') as [string, string]] })
    return ((await answer.json()) as { status: string }).status
  }
  const deadline = Date.now() + 300_000
  const checkTime = () => {
    if (Date.now() > deadline) throw new Error('The queue is not empty after five minutes')
  }
  while ((await ask()) === 'pending') checkTime()
  for (;;) {
    const { rows } = await pool.query<{ left: boolean }>('select exists (select from jobs) as left')
    if (rows[0]?.left === false) return
    checkTime()
    await sleep(2)
  }
}

/** A queue that is empty because its jobs failed would be a fast one. */
async function checkCompleted({ pool }: Setting, count: number, since: Date) {
  const { rows } = await pool.query<{ status: string; found: string }>(
    `select status, count(*) as found from scans where content_name = 'queued.txt' and created_at >= $1 group by status`,
    [since],
  )
  const found = rows.map((row) => `${row.found} ${row.status}`).join(', ')
  if (found !== `${count} clean`) throw new Error(`Of ${count} jobs there are ${found}`)
}
