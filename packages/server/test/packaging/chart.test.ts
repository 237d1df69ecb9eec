import assert from 'node:assert/strict'
import { lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import {
  chartTrials,
  findChartRenderer,
  type Manifest,
  packChart,
  renderChart,
  unpackChart,
} from '../../../../scripts/release/chart.ts'
import { manifestDir, readText, readYaml, repository } from './files.ts'

const skip = findChartRenderer() === undefined && 'neither helm nor go is installed'
const work = mkdtempSync(join(tmpdir(), 'assay-chart-'))
after(() => rmSync(work, { recursive: true }))

type Deployment = Manifest & {
  spec: { replicas?: number; template: { metadata: { annotations: object }; spec: { containers: object[] } } }
}
const list = (objects: Manifest[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()
const find = <T extends Manifest>(objects: Manifest[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name) as T
const always = [
  'ConfigMap assay-settings',
  'Deployment assay-api',
  'Deployment assay-worker',
  'PodDisruptionBudget assay-api',
  'PodDisruptionBudget assay-worker',
  'Service assay',
]

test('the chart has the version of Assay', () => {
  const { version } = JSON.parse(readText('package.json')) as { version: string }
  const [chart] = readYaml<{ version: string; appVersion: string }>('packaging/helm/Chart.yaml')
  assert.deepEqual([chart?.version, chart?.appVersion], [version, version])
})

test('the packed chart renders the manifests, and values replace what they name', { skip }, () => {
  packChart(repository, { file: join(work, 'chart.tgz'), epoch: 1, work: mkdtempSync(join(work, 'packed-')) })
  const dir = unpackChart(join(work, 'chart.tgz'), work)
  assert(!lstatSync(join(dir, 'manifests')).isSymbolicLink())

  const defaults = renderChart(dir, chartTrials.defaults, work)
  const scalers = ['HorizontalPodAutoscaler assay-api', 'HorizontalPodAutoscaler assay-worker']
  assert.deepEqual(list(defaults), [...always, ...scalers, 'NetworkPolicy assay'].sort())
  for (const role of ['api', 'worker']) {
    const [manifest] = readYaml<Deployment>(`${manifestDir}/${role}.yaml`)
    const rendered = find<Deployment>(defaults, 'Deployment', `assay-${role}`)
    assert.equal(rendered.spec.replicas, undefined)
    const expected = structuredClone(manifest) as Deployment
    delete expected.spec.replicas
    expected.spec.template.metadata.annotations = rendered.spec.template.metadata.annotations
    Object.assign(expected.spec.template.spec.containers[0] ?? {}, {
      image: 'assay:0.1.0',
      imagePullPolicy: 'IfNotPresent',
    })
    assert.deepEqual(rendered, expected)
  }
  for (const name of ['autoscaling-api', 'autoscaling-worker', 'service', 'disruption', 'network-policy']) {
    for (const object of readYaml<Manifest>(`${manifestDir}/${name}.yaml`))
      assert.deepEqual(find(defaults, object.kind, object.metadata.name), object)
  }
  const settings = readText(`${manifestDir}/settings.env`)
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
  const { data } = find<Manifest & { data: object }>(defaults, 'ConfigMap', 'assay-settings')
  assert.deepEqual(
    Object.entries(data).map(([name, value]) => `${name}=${value}`),
    settings.sort(),
  )

  const queue = renderChart(dir, chartTrials.queue, work)
  const queued = ['HorizontalPodAutoscaler assay-api', 'ScaledObject assay-worker', 'NetworkPolicy assay']
  assert.deepEqual(list(queue), [...always, ...queued].sort())
  const [keda] = parseAllDocuments(readText(`${manifestDir}/keda.yaml`)).map((one) => one.toJS())
  keda.spec.maxReplicaCount = 40
  Object.assign(keda.spec.triggers[0].metadata, {
    serverAddress: 'http://prometheus:9090',
    threshold: '50',
    query: 'max(assay_jobs_waiting{job="assay"})',
  })
  assert.deepEqual(find(queue, 'ScaledObject', 'assay-worker'), keda)
  type Rule = { to?: object[]; from?: object[]; ports?: { port: string | number }[] }
  const { spec } = find<Manifest & { spec: { ingress: Rule[]; egress: Rule[] } }>(queue, 'NetworkPolicy', 'assay')
  const findRule = (rules: Rule[], wanted: string | number) =>
    rules.find(({ ports }) => ports?.some(({ port }) => port === wanted))
  assert.deepEqual(findRule(spec.egress, 5432)?.to, chartTrials.queue.networkPolicy.database)
  assert.deepEqual(findRule(spec.ingress, 'metrics')?.from, chartTrials.queue.networkPolicy.metrics)
  const changed = find<Manifest & { data: Record<string, string> }>(queue, 'ConfigMap', 'assay-settings').data
  const expected = { ASSAY_REGION: 'eu', ASSAY_DRAIN_SECONDS: '20', ASSAY_NSFW_THRESHOLD: '0.5' }
  assert.deepEqual({ ...changed, ...expected, ASSAY_MAX_CONNECTIONS: '1048576' }, changed)
  const restarted = (objects: Manifest[]) =>
    find<Deployment>(objects, 'Deployment', 'assay-api').spec.template.metadata.annotations
  assert.notDeepEqual(restarted(queue), restarted(defaults))

  const plain = renderChart(dir, { worker: { autoscaling: { by: 'queue' } } }, work)
  assert.deepEqual([find(plain, 'ScaledObject', 'assay-worker')], readYaml(`${manifestDir}/keda.yaml`))

  const fixed = renderChart(dir, chartTrials.fixed, work)
  assert.deepEqual(list(fixed), always)
  assert.equal(find<Deployment>(fixed, 'Deployment', 'assay-worker').spec.replicas, 5)

  for (const part of ['api', 'worker']) {
    const by = part === 'api' ? 'queue' : 'moon'
    assert.throws(() => renderChart(dir, { [part]: { autoscaling: { by } } }, work), /autoscaling\.by/)
  }
})
