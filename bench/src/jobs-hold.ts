import { setTimeout as sleep } from 'node:timers/promises'
import { openOrigin } from '../../acceptance/support/origin.ts'
import type { Stores } from '../../packages/server/src/compose/stores.ts'
import type { Service } from './children.ts'

/** Shorter than the time after which the service gives up a stalled download. */
const dripMs = 5000
/** A job that has not begun after this time has found no free place. */
const fullMs = 2000

/**
 * Holds the worker, so that a queue can be filled and released at one moment: downloads that do not end take all
 * of its places, and a worker without a free place claims nothing. The service itself is unchanged.
 */
export async function openHold({ service, jobs }: { service: Service; jobs: Pick<Stores['jobs'], 'countJobs'> }) {
  const held: (() => void)[] = []
  let isHolding = false
  let downloads = 0
  const origin = await openOrigin((_, response) => {
    downloads++
    response.write('.')
    const drip = setInterval(() => response.write('.'), dripMs)
    response.once('close', () => clearInterval(drip))
    if (isHolding) held.push(() => void response.end())
    else response.end()
  })

  return {
    async hold() {
      isHolding = true
      downloads = 0
      for (let sent = 1; ; sent++) {
        await submitDownload()
        for (let waited = 0; downloads < sent && waited < fullMs; waited += 10) await sleep(10)
        if (downloads === sent) continue
        const { running, waiting } = await jobs.countJobs()
        if (running !== downloads || waiting !== 1) throw new Error(`${running} run and ${waiting} wait, of ${sent}`)
        return
      }
    },
    release() {
      isHolding = false
      for (const end of held.splice(0)) end()
    },
    close: origin.close,
  }

  async function submitDownload() {
    const [header = ''] = service.headers
    const answer = await fetch(new URL('/v1/malware/submit/url', service.url), {
      method: 'POST',
      headers: [header.split(': ') as [string, string], ['Content-Type', 'application/json']],
      body: JSON.stringify({ file_url: `${origin.url}/never` }),
    })
    if (answer.status !== 202) throw new Error(`A download is answered with ${answer.status} ${await answer.text()}`)
  }
}
