import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
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
  const region = randomUUID()
  const server = await openMetricsServer(makeMetrics({ region, version: '1' }), { host: '127.0.0.2', port: 0 })
  const read = async (host: string) => (await fetch(`http://${host}:${server.port}/metrics`)).text()
  try {
    assert.match(await read('127.0.0.2'), new RegExp(`^assay_info\\{.*${region}`, 'm'))
    // Another process may use the same port of the other address.
    assert.doesNotMatch(await read('127.0.0.1').catch(() => ''), new RegExp(region))
  } finally {
    await server.close()
  }
})

test('durations are a histogram with a series for each pair of labels', async () => {
  const metrics = makeMetrics({ region: 'test', version: '1' })
  const observe = metrics.timer('assay_sample_seconds', 'A sample.', ['call', 'outcome'])
  for (const seconds of [0.001, 0.005, 0.2, 1000]) observe(seconds, 'put', 'ok')
  observe(3, 'put', 'lost')
  const text = await metrics.registry.metrics()
  assert.match(text, /^# TYPE assay_sample_seconds histogram$/m)
  const find = (name: string, ...labels: string[]) =>
    text
      .split('\n')
      .find((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
      ?.replace(/^.* /, '')
  const [ok, lost] = ['outcome="ok"', 'outcome="lost"']
  assert.equal(find('assay_sample_seconds_bucket', 'le="0.005"', 'call="put"', ok, 'region="test"'), '2')
  assert.equal(find('assay_sample_seconds_bucket', 'le="0.25"', ok), '3')
  assert.equal(find('assay_sample_seconds_bucket', 'le="100"', ok), '3')
  assert.equal(find('assay_sample_seconds_bucket', 'le="+Inf"', ok), '4')
  assert.equal(find('assay_sample_seconds_sum', ok), '1000.206')
  assert.equal(find('assay_sample_seconds_count', ok), '4')
  assert.equal(find('assay_sample_seconds_count', lost), '1')
})

test('a duration that is no finite number is an error, and counts nowhere', async () => {
  const metrics = makeMetrics({ region: 'test', version: '1' })
  const observe = metrics.timer('assay_sample_seconds', 'A sample.', ['call'])
  for (const seconds of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    assert.throws(() => observe(seconds, 'put'), TypeError)
  }
  assert.doesNotMatch(await metrics.registry.metrics(), /^assay_sample_seconds_\w+\{/m)
})
