import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { filePart, formType, toForm } from '../../acceptance/support/forms.ts'
import { sendTo } from '../../acceptance/support/http.ts'
import { findChildren } from '../../acceptance/support/processes.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { withInstallation } from '../installation.ts'
import { readRss } from '../memory.ts'

const uploads = 64
const megabytes = 50
const requests = 10_000
const clients = 100
const maxMore = 100

export const soak: Case = {
  about: `${uploads} uploads of ${megabytes} MB at once, then ${requests} requests: after a minute each process has at most ${maxMore} MB more than before`,
  run: () =>
    withInstallation({}, async ({ url, pid, apiKey }) => {
      const measure = () => new Map([pid(), ...findChildren(pid(), '')].map((id) => [id, readRss(id)]))
      const headers = { 'x-api-key': apiKey }
      const answers = new Map<string, number>()
      const send = async (request: Parameters<typeof sendTo>[1]) => {
        // The service may close the connection of an upload that it has refused already.
        const outcome = await sendTo(url, request).then(
          ({ status }) => String(status),
          () => 'cut',
        )
        answers.set(outcome, (answers.get(outcome) ?? 0) + 1)
      }
      const path = '/v1/malware/scan/file'
      const upload = () =>
        send({ method: 'POST', path, headers: { ...headers, 'content-type': formType }, body: toBody() })
      const ping = async () => {
        for (let n = 0; n < requests / clients; n++) await send({ method: 'GET', path: '/v1/ping', headers })
      }
      await sendTo(url, { method: 'GET', path: '/v1/ping', headers })
      const before = measure()
      await Promise.all(Array.from({ length: uploads }, upload))
      const busy = measure()
      await Promise.all(Array.from({ length: clients }, ping))
      await pause(60_000)
      const after = measure()
      const rows = [...before].flatMap(([id, megabytes]) => {
        const now = after.get(id)
        return now === undefined ? [] : [{ id, megabytes, peak: busy.get(id), now }]
      })
      const observed = rows
        .map((row) => `${row.id === pid() ? 'service' : 'child'} ${row.megabytes}, ${row.peak}, ${row.now} MB`)
        .join('; ')
      for (const { megabytes, now } of rows) assert(now <= megabytes + maxMore, observed)
      return `RSS before, at the end of the uploads and after a minute: ${observed}; answers: ${toText(answers)}`
    }),
}

function* toBody(): Generator<Buffer> {
  const [head = '', tail = ''] = toForm([filePart('SPLIT')])
    .toString('latin1')
    .split('SPLIT')
  // Each upload differs, because the verdict cache would answer a repeated one.
  yield Buffer.concat([Buffer.from(head, 'latin1'), randomBytes(16)])
  for (let n = 0; n < megabytes; n++) yield block
  yield Buffer.from(tail, 'latin1')
}

const block = randomBytes(1024 * 1024)
