import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { pack } from './pack.ts'

const chartDir = 'packaging/helm'
const manifestDir = 'packaging/kubernetes'
const renderer = fileURLToPath(new URL('render-chart.go', import.meta.url))
export type Manifest = { apiVersion: string; kind: string; metadata: { name: string }; spec?: Record<string, unknown> }

export const toChartName = (version: string) => `assay-${version}.tgz`

/** Packs the chart as `helm package` does, with the manifests in the place of the link that the repository has. */
export function packChart(repository: string, { file, epoch, work }: { file: string; epoch: number; work: string }) {
  const dir = join(work, 'assay')
  rmSync(dir, { recursive: true, force: true })
  for (const [from, to] of [
    [chartDir, dir],
    [manifestDir, join(dir, 'manifests')],
  ] as const)
    copyTracked(join(repository, from), to)
  rmSync(join(dir, 'manifests/kustomization.yaml'))
  pack({ dir: work, names: ['assay'], file, epoch })
}

/** Copies the files of a directory that git tracks, without links, to a new directory. */
function copyTracked(from: string, to: string) {
  const names = execFileSync('git', ['ls-files', '-z'], { cwd: from, encoding: 'utf8' }).split('\0')
  for (const name of names.filter((one) => one !== '' && !lstatSync(join(from, one)).isSymbolicLink()))
    cpSync(join(from, name), join(to, name))
}

/** The program that can render the chart here: helm, or Go with its own template engine. */
export function findChartRenderer(): 'helm' | 'go' | undefined {
  return (['helm', 'go'] as const).find((name) => spawnSync(name, ['version'], { stdio: 'ignore' }).status === 0)
}

/** Renders the chart in a directory with values over its own, and returns the objects. */
export function renderChart(dir: string, values: object, work: string): Manifest[] {
  const text = findChartRenderer() === 'helm' ? renderByHelm(dir, values, work) : renderByGo(dir, values)
  return readObjects(text)
}

function renderByHelm(dir: string, values: object, work: string): string {
  const file = join(work, 'values.json')
  writeFileSync(file, JSON.stringify(values))
  return run('helm', ['template', 'assay', dir, '--values', file], '')
}

function renderByGo(dir: string, values: object): string {
  const read = (name: string) => readFileSync(join(dir, name), 'utf8')
  const list = (name: string, ending: RegExp) =>
    readdirSync(join(dir, name))
      .filter((one) => ending.test(one))
      .map((one) => join(name, one))
  // The engine has no parser for YAML: it gets the same documents as JSON.
  const toJson = (text: string) =>
    parseAllDocuments(text)
      .map((document) => JSON.stringify(document.toJS()))
      .join('\n---\n')
  const entries = list('manifests', /\.yaml$/).map((name) => [name, toJson(read(name))])
  const files = Object.fromEntries([...entries, ['manifests/settings.env', read('manifests/settings.env')]])
  const chart = parse(read('Chart.yaml')) as { name: string; version: string; appVersion: string }
  const input = {
    Templates: Object.fromEntries(list('templates', /\./).map((name) => [name, read(name)])),
    Files: files,
    Values: merge(parse(read('values.yaml')), values),
    Chart: { Name: chart.name, Version: chart.version, AppVersion: chart.appVersion },
    Release: { Name: 'assay', Namespace: 'assay' },
  }
  const rendered = JSON.parse(run('go', ['run', renderer], JSON.stringify(input))) as Record<string, string>
  const objects = Object.entries(rendered).filter(([name]) => name.endsWith('.yaml'))
  return objects.map(([, text]) => text).join('\n---\n')
}

function run(program: string, args: string[], input: string): string {
  const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '', CGO_ENABLED: '0' }
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8', env })
  if (status !== 0) throw new Error(stderr.trim())
  return stdout
}

function readObjects(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    for (const fault of document.errors) throw new Error(`${fault.message}\n${text}`)
    const object = document.toJS() as Manifest | null
    return object === null ? [] : [object]
  })
}

/** Puts values over others as helm does: maps are merged, everything else is replaced. */
function merge(base: unknown, over: unknown): unknown {
  const isMap = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isMap(base) || !isMap(over)) return over
  const merged = { ...base }
  for (const [name, value] of Object.entries(over)) merged[name] = name in base ? merge(base[name], value) : value
  return merged
}

/** Unpacks a packed chart and returns its directory. */
export function unpackChart(file: string, work: string): string {
  execFileSync('tar', ['-xzf', file, '-C', work])
  return join(work, 'assay')
}

/** Values with which the chart is tried: its own, and those that a cluster with KEDA and a registry would have. */
export const chartTrials = {
  defaults: {},
  queue: {
    image: { repository: 'registry.example.com/assay', pullSecrets: [{ name: 'registry' }] },
    settings: {
      ASSAY_REGION: 'eu',
      ASSAY_DRAIN_SECONDS: 20,
      ASSAY_MAX_CONNECTIONS: 1_048_576,
      ASSAY_NSFW_THRESHOLD: 0.5,
    },
    worker: {
      autoscaling: {
        by: 'queue',
        maxReplicas: 40,
        waitingJobs: 50,
        prometheus: 'http://prometheus:9090',
        selector: 'job="assay"',
      },
    },
    networkPolicy: {
      database: [{ ipBlock: { cidr: '10.1.2.3/32' } }],
      metrics: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'observability' } } }],
    },
  },
  fixed: {
    api: { replicas: 3, autoscaling: { by: 'none' } },
    worker: { replicas: 5, autoscaling: { by: 'none' }, resources: { requests: { cpu: '4', memory: '4Gi' } } },
    networkPolicy: { enabled: false },
  },
}
