import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openFakeClamd } from '../../acceptance/support/fake-clamd.ts'
import { makeCaller, toId } from '../../acceptance/support/submitting.ts'
import type { Case } from '../case.ts'
import { withInstallation } from '../installation.ts'
import { readPeakRss, readRss } from '../memory.ts'

const jobs = 10_000
const callers = 8

export const soak: Case = {
  about: `${jobs} jobs that wait for an engine which does not answer: RSS grows by at most 50 MB`,
  async run() {
    const dir = mkdtempSync(join(tmpdir(), 'assay-soak-clamd-'))
    const socket = join(dir, 'clamd.sock')
    const clamd = await openFakeClamd(socket)
    try {
      return await withInstallation({ ASSAY_CLAMD: socket }, ({ url, pid, apiKey }) => queue(url, pid(), apiKey))
    } finally {
      await clamd.close()
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

async function queue(url: string, pid: number, apiKey: string): Promise<string> {
  const caller = makeCaller(url, apiKey)
  const submit = async (engineIs: 'good' | 'silent') => {
    let last = ''
    for (let n = 0; n < jobs / callers; n++) {
      last = toId(await caller.sendFile('malware', 'submit', `${engineIs} ${n} ${'content '.repeat(100)}`))
    }
    return last
  }
  const submitAll = (engineIs: 'good' | 'silent') =>
    Promise.all(Array.from({ length: callers }, () => submit(engineIs)))
  // Warms up with as many requests, so that code and heap of requests are not attributed to queued jobs.
  for (const id of await submitAll('good')) await caller.complete('malware', id)
  await pause(3000)
  const before = readRss(pid)
  const startedAt = performance.now()
  await submitAll('silent')
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  await pause(3000)
  const after = readRss(pid)
  const observed = `RSS ${before} MB after ${jobs} jobs that were done, ${after} MB with ${jobs} that wait (${readPeakRss(pid)} MB at the most); ${seconds} s to submit`
  assert(after - before <= 50, observed)
  return observed
}
