import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'

/** Packages with the schemas of compose files and Kubernetes, installed by this check alone. */
const packages = [
  'ajv@8.20.0',
  'dclint@3.1.0',
  'kubernetes-models@5.1.0',
  '@kubernetes-models/keda@2.0.0',
  'yaml@2.9.1',
]

/** Program that runs next to those packages and prints a line for each invalid document. */
const program = `
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import Ajv from 'ajv/dist/2019.js'
const { compose, manifests } = JSON.parse(readFileSync(0, 'utf8'))
const schema = JSON.parse(readFileSync('node_modules/dclint/schemas/compose.schema.json', 'utf8'))
const { $schema, ...rest } = schema
const check = new Ajv.default({ strict: false, validateFormats: false, allErrors: true }).compile(rest)
for (const { file, document } of compose) {
  if (!check(document)) for (const error of check.errors) console.log(file + error.instancePath + ' ' + error.message)
}
for (const { file, document } of manifests) {
  const [version, group] = document.apiVersion.split('/').reverse()
  const from = group === 'keda.sh' ? '@kubernetes-models/keda' : 'kubernetes-models'
  const kinds = await import([from, ...(group ? [group] : []), version].join('/'))
  try {
    new kinds[document.kind](document).validate()
  } catch (error) {
    console.log(file + ' ' + document.kind + ': ' + error.message)
  }
}
`

type Document = { file: string; document: unknown }

/** Lists errors in documents by their schemas. */
export function checkDocuments(documents: { compose?: Document[]; manifests: Document[] }): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'assay-schemas-'))
  try {
    writeFileSync(join(dir, 'package.json'), '{"type":"module","private":true}')
    writeFileSync(join(dir, 'check.js'), program)
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
      cwd: dir,
      stdio: 'ignore',
    })
    const input = JSON.stringify({ compose: [], ...documents })
    const output = execFileSync(process.execPath, ['check.js'], { cwd: dir, input, encoding: 'utf8' })
    return output.split('\n').filter((line) => line !== '')
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Lists errors in the compose files and manifests, and the files that could not be checked. */
export function checkSchemas(repository: string): { faults: string[]; notes: string[] } {
  const rendered = renderManifests(repository)
  const parse = (file: string, text: string) =>
    parseAllDocuments(text, { merge: true }).map((document) => ({ file, document: document.toJS() }))
  const read = (file: string) => parse(file, readFileSync(join(repository, file), 'utf8'))
  const compose = [...read('compose.yaml'), ...read('compose.cluster.yaml')]
  const optional = ['autoscaling', 'keda'].flatMap((name) => read(`packaging/kubernetes/${name}.yaml`))
  const manifests = [...parse('kustomization', rendered ?? ''), ...optional].filter(({ document }) => document !== null)
  const notes = [
    `compose: ${compose.length} files against the schema of the compose specification`,
    rendered === undefined
      ? 'Kubernetes: NOT rendered, there is no kubectl'
      : `Kubernetes: ${manifests.length} objects rendered by kubectl kustomize, against their schemas`,
  ]
  return { faults: checkDocuments({ compose, manifests }), notes }
}

function renderManifests(repository: string): string | undefined {
  const { status, stdout, stderr, error } = spawnSync(
    'kubectl',
    ['kustomize', join(repository, 'packaging/kubernetes')],
    {
      encoding: 'utf8',
    },
  )
  if (error !== undefined) return undefined
  if (status !== 0) throw new Error(stderr)
  return stdout
}
