import { randomBytes } from 'node:crypto'
import { newContent } from './malware-content.ts'
import { isWholeAnswer, type Message, newForm, openKept } from './upload.ts'

/** `scan` uploads new contents of 1 KB to `url`; `get` requests the `urls` in turns. */
export type CurveJob = {
  requests: { scan: string } | { get: string[] }
  headers: string[]
  connections: number
  seconds: number
}
/** `ids` are those of the last scans. `refused` counts responses of 503, which are not part of the rate. */
export type CurveResult = {
  perSecond: number
  p50Ms: number
  p99Ms: number
  done: number
  refused: number
  ids: string[]
}

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: CurveJob) => {
  run(job).then(
    (result: CurveResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

const maxIds = 200

async function run({ requests, headers, connections, seconds }: CurveJob): Promise<CurveResult> {
  const took: number[] = []
  const ids: string[] = []
  const seed = randomBytes(4).toString('hex')
  let [sent, refused] = [0, 0]
  const [first = ''] = 'scan' in requests ? [requests.scan] : requests.get
  const { hostname, port } = new URL(first)
  const start = performance.now()
  const end = start + seconds * 1000

  const work = async (_: unknown, i: number) => {
    let isRefused = false
    const isGood = (reply: string) => {
      isRefused = reply.startsWith('HTTP/1.1 503 ')
      if (ids.length < maxIds) ids.push(...(/"id":"([^"]+)"/.exec(reply)?.slice(1) ?? []))
      return isRefused || /^HTTP\/1\.1 20[01] /.test(reply)
    }
    const connection = openKept({ host: hostname, port: Number(port) }, { isWhole: isWholeAnswer, isGood })
    const next = 'scan' in requests ? newScans(requests.scan, i) : newGets(requests.get)
    try {
      do {
        const message = next()
        const at = performance.now()
        await connection.send(message)
        if (isRefused) refused++
        else took.push(performance.now() - at)
      } while (performance.now() < end)
    } finally {
      connection.close()
    }
  }

  function newScans(url: string, variant: number): () => Message {
    const content = newContent(1024, variant)
    const form = newForm({ url, headers, expected: '' }, content, 'curve.txt')
    return () => {
      content.stamp(`${seed}${(sent++).toString(16).padStart(8, '0')}`)
      return form
    }
  }

  function newGets(urls: string[]): () => Message {
    const heads = urls.map((url) => {
      const { host, pathname } = new URL(url)
      return [Buffer.from([`GET ${pathname} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n'))]
    })
    return () => () => heads[sent++ % heads.length] ?? []
  }

  await Promise.all(Array.from({ length: connections }, work))
  const sorted = took.toSorted((a, b) => a - b)
  const find = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  const perSecond = (took.length * 1000) / (performance.now() - start)
  return { perSecond, p50Ms: find(0.5), p99Ms: find(0.99), done: took.length, refused, ids }
}
