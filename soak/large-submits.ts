import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { filePart, formType, toForm } from '../acceptance/support/forms.ts'
import { sendTo } from '../acceptance/support/http.ts'
import { makeCaller, toId } from '../acceptance/support/submitting.ts'
import { withInstallation } from './installation.ts'
import { readPeakRss, readRss } from './memory.ts'

const submits = 32
const megabytes = 250

export const submitDescription = `${submits} submits of ${megabytes} MB at once, and their scans: RSS at most 350 MB`

/** Measures the memory of the service while many large files are submitted at once and scanned. */
export function submitLarge(settings: NodeJS.ProcessEnv): Promise<string> {
  return withInstallation(settings, async ({ url, pid, apiKey }) => {
    const before = readRss(pid())
    const block = randomBytes(1024 * 1024)
    const [head = '', tail = ''] = toForm([filePart('SPLIT')])
      .toString('latin1')
      .split('SPLIT')
    const startedAt = performance.now()
    const answers = await Promise.all(
      Array.from({ length: submits }, async () => {
        const headers = { 'content-type': formType, 'x-api-key': apiKey }
        return sendTo(url, {
          method: 'POST',
          path: '/v1/malware/submit/file',
          headers,
          body: toBody(head, block, tail),
        })
      }),
    )
    const submitted = readPeakRss(pid())
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    const caller = makeCaller(url, apiKey)
    const results = await Promise.all(answers.map((answer) => complete(caller, toId(answer))))
    const verdicts = [...new Set(results.map(({ status, signals }) => [status, ...(signals ?? [])].join(' ')))]
    const peak = readPeakRss(pid())
    const all = Math.round((performance.now() - startedAt) / 1000)
    const observed = `RSS ${before} MB before, ${submitted} MB at the most while submitting (${seconds} s), ${peak} MB at the most with all scans (${all} s); verdicts ${verdicts}`
    assert(peak <= 350, observed)
    // The content has no threat; on a busy machine a scan may exceed its time and report that.
    assert(
      verdicts.every((verdict) => ['clean', 'error Error:ScanLimitExceeded'].includes(verdict)),
      observed,
    )
    return observed
  })
}

function* toBody(head: string, block: Buffer, tail: string): Generator<Buffer> {
  yield Buffer.from(head, 'latin1')
  // A few bytes below the limit, which is a power of two.
  for (let n = 0; n < megabytes - 1; n++) yield block
  yield Buffer.from(tail, 'latin1')
}

/** Without a deadline, because 8 GB are scanned here. */
async function complete(caller: ReturnType<typeof makeCaller>, id: string) {
  for (let tries = 0; ; tries++) {
    try {
      return await caller.complete('malware', id)
    } catch (error) {
      if (tries === 4) throw error
    }
  }
}
