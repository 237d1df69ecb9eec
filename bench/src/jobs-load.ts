import { randomBytes } from 'node:crypto'
import { measureGet } from './load.ts'
import { newContent } from './malware-content.ts'
import { newForm, openKept } from './upload.ts'

/** Sends `count` different contents; the next free connection takes the next one. */
export type SubmitJob = { url: string; headers: string[]; bytes: number; count: number; connections: number }
export type PingJob = { ping: Parameters<typeof measureGet>[0] }
/** `lastId` is the id of the job that was accepted last. */
export type LoadResult = { perSecond: number; lastId: string }

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: SubmitJob | PingJob) => {
  const work = 'ping' in job ? ping(job) : submit(job)
  work.then(
    (result: LoadResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

const ping = async ({ ping }: PingJob): Promise<LoadResult> => ({ perSecond: await measureGet(ping), lastId: '' })

async function submit({ url, headers, bytes, count, connections }: SubmitJob): Promise<LoadResult> {
  const { hostname, port } = new URL(url)
  const seed = randomBytes(4).toString('hex')
  let [next, lastId] = [0, '']
  const isGood = (reply: string) => {
    lastId = /\{"id":"([^"]+)"\}$/.exec(reply)?.[1] ?? ''
    return reply.startsWith('HTTP/1.1 202 ') && lastId !== ''
  }

  const work = async (_: unknown, i: number) => {
    const content = newContent(bytes, i)
    const form = newForm({ url, headers, expected: '' }, content, 'queued.txt')
    // The body of the response is a JSON object, and no header ends in its last bytes.
    const connection = openKept(
      { host: hostname, port: Number(port) },
      { isWhole: (reply) => reply.endsWith('}'), isGood },
    )
    try {
      for (let turn = next++; turn < count; turn = next++) {
        content.stamp(`${seed}${turn.toString(16).padStart(8, '0')}`)
        await connection.send(form)
      }
    } finally {
      connection.close()
    }
  }

  const start = performance.now()
  await Promise.all(Array.from({ length: connections }, work))
  return { perSecond: (count * 1000) / (performance.now() - start), lastId }
}
