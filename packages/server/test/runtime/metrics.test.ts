import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeMetrics, openMetricsServer } from '../../src/runtime/metrics.ts'

test('a total is a counter with the value of the last reading', async () => {
  const metrics = makeMetrics({ region: 'test', version: '1' })
  let total = 2
  metrics.total('assay_sample_total', 'A sample.', () => total)
  await metrics.registry.metrics()
  total = 3
  const text = await metrics.registry.metrics()
  assert.match(text, /^# TYPE assay_sample_total counter$/m)
  assert.match(text, /^assay_sample_total(\{[^}]*\})? 3$/m)
})

test('metrics are served on the address of the setting, and on no other', async () => {
  const metrics = makeMetrics({ region: 'test', version: '1' })
  const server = await openMetricsServer(metrics, { host: '127.0.0.2', port: 0 })
  try {
    const answer = await fetch(`http://127.0.0.2:${server.port}/metrics`)
    assert.match(await answer.text(), /^assay_info\{/m)
    await assert.rejects(fetch(`http://127.0.0.1:${server.port}/metrics`))
  } finally {
    await server.close()
  }
})
