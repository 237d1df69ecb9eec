import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeProcessMetrics } from '../../src/compose/http-process/listen-in-processes.ts'
import type { Link } from '../../src/runtime/link.ts'
import { addMetrics, makeMetrics } from '../../src/runtime/metrics.ts'

test('counts of a process that ends while another one is slow to answer are added once', async () => {
  const answer = async () => {
    const metrics = makeMetrics({ region: 'test', version: '1' })
    metrics.countFailure()
    return { value: await metrics.registry.getMetricsAsJSON() }
  }
  const slow = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const newLink = (call: () => Promise<unknown>, closed: Promise<void>) => ({ call, closed }) as unknown as Link
  const processes = makeProcessMetrics()
  processes.add(
    newLink(
      async () => {
        await slow.promise
        return answer()
      },
      new Promise(() => {}),
    ),
  )
  processes.add(newLink(answer, ended.promise))
  const reading = processes.read()
  // Both answers are complex enough that each takes several turns.
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  ended.resolve()
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  slow.resolve()
  const countFailures = async (read: Awaited<typeof reading>) =>
    (await addMetrics(read)).find(({ name }) => name === 'assay_internal_errors_total')?.values[0]?.value
  assert.equal(await countFailures(await reading), 2)
  assert.equal(await countFailures(await processes.read()), 2)
})
