import { setTimeout as sleep } from 'node:timers/promises'
import type { Setting, Target } from './jobs-setting.ts'
import { forgetPeak, readMegabytes, readPeakMegabytes } from './processes.ts'

export type Queue = { count: number; lastId: string; since: Date; perSecond: number }
/** Memory of the service in megabytes: before, and the peak. */
export type Drained = { perSecond: number; beforeMegabytes: number; peakMegabytes: number }

/** Fills a queue with `count` different jobs of 1 KB while the worker is held, and returns the rate of acceptance. */
export async function fillQueue(
  setting: Target & Pick<Setting, 'load'>,
  size: { count: number; connections: number },
): Promise<Queue> {
  const { url, headers } = setting.service
  const since = new Date()
  const { perSecond, lastId } = await setting.load.run({ url, headers, bytes: 1024, ...size })
  return { count: size.count, lastId, since, perSecond }
}

/** Releases the worker and measures until the last job is complete. */
export async function drainQueue(setting: Target, { count, lastId, since }: Queue): Promise<Drained> {
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

/** Checks that no job of the queue has begun. */
export async function checkHeld({ pool }: Target, { count }: Queue) {
  const { rows } = await pool.query<{ waiting: string }>(
    'select count(*) as waiting from jobs where held_until is null',
  )
  const waiting = Number(rows[0]?.waiting)
  // One of the jobs that hold the worker found no place, and waits as well.
  if (waiting !== count + 1) throw new Error(`${waiting} jobs wait where ${count} were submitted`)
}

/** Waits for the last job, which costs the service nothing, and then for the few that end after it. */
async function whenEmpty({ service, pool }: Target, lastId: string) {
  const [header = ''] = service.headers
  const readStatus = async () => {
    const url = new URL(`/v1/malware/${lastId}?wait=30`, service.url)
    const answer = await fetch(url, { headers: [header.split(': ') as [string, string]] })
    return ((await answer.json()) as { status: string }).status
  }
  const deadline = Date.now() + 300_000
  const checkTime = () => {
    if (Date.now() > deadline) throw new Error('The queue is not empty after five minutes')
  }
  while ((await readStatus()) === 'pending') checkTime()
  for (;;) {
    const { rows } = await pool.query<{ left: boolean }>('select exists (select from jobs) as left')
    if (rows[0]?.left === false) return
    checkTime()
    await sleep(2)
  }
}

/** Checks that all jobs are clean: a queue whose jobs fail would empty too fast. */
async function checkCompleted({ pool }: Target, count: number, since: Date) {
  const { rows } = await pool.query<{ status: string; found: string }>(
    `select status, count(*) as found from scans where content_name = 'queued.txt' and created_at >= $1 group by status`,
    [since],
  )
  const found = rows.map((row) => `${row.found} ${row.status}`).join(', ')
  if (found !== `${count} clean`) throw new Error(`Of ${count} jobs there are ${found}`)
}
