import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeEscapeReport } from '../../src/compose/sandbox.ts'
import { policies } from '../../src/engines/jail/policy.ts'
import { makeMetrics } from '../../src/runtime/metrics.ts'
import { silentLog } from '../support/silent-log.ts'
import { readText, readYaml, repository } from './files.ts'

const dir = 'packaging/monitoring'
const testFiles = ['prometheus-alerts.test.yml', 'prometheus-alerts-days.test.yml']
const skip = spawnSync('promtool', ['--version']).error !== undefined && 'not installed: promtool'

const run = (cwd: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd, encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}

test('promtool accepts the alert rules, and their tests pass', { skip }, () => {
  const check = run(join(repository, dir), 'check', 'rules', 'prometheus-alerts.yml')
  assert.equal(check.status, 0, check.output)
  const tests = run(join(repository, dir), 'test', 'rules', ...testFiles)
  assert.equal(tests.status, 0, tests.output)
})

test('the tests of the alert rules fail for a rule that never fires', { skip }, () => {
  const copy = mkdtempSync(join(tmpdir(), 'assay-rules-'))
  try {
    cpSync(join(repository, dir), copy, { recursive: true })
    const rules = readText(`${dir}/prometheus-alerts.yml`).replace('assay_degraded == 1', 'assay_degraded == 2')
    writeFileSync(join(copy, 'prometheus-alerts.yml'), rules)
    assert.equal(run(copy, 'test', 'rules', ...testFiles).status, 1)
  } finally {
    rmSync(copy, { recursive: true })
  }
})

test('every alert rule has a test and is described in the documents', () => {
  type Rules = { groups: { rules: { alert: string }[] }[] }
  type Tests = { tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[] }
  const [rules] = readYaml<Rules>(`${dir}/prometheus-alerts.yml`)
  const alerts = rules?.groups.flatMap((group) => group.rules.map(({ alert }) => alert)) ?? []
  const cases = testFiles
    .flatMap((file) => readYaml<Tests>(`${dir}/${file}`))
    .flatMap(({ tests }) => tests.flatMap((group) => group.alert_rule_test))
  const documents = readText('docs/operating.md')
  assert(alerts.length > 5)
  for (const alert of alerts) {
    const own = cases.filter(({ alertname }) => alertname === alert)
    assert(
      own.some(({ exp_alerts }) => exp_alerts !== undefined) && own.some(({ exp_alerts }) => exp_alerts === undefined),
      `${alert} needs a test that it fires and one that it does not`,
    )
    assert(documents.includes(`| \`${alert}\` `), `docs/operating.md does not describe ${alert}`)
  }
})

test('the series of each parser begins with 0, as in the tests of the alert rules', async () => {
  const metrics = makeMetrics({ region: 'test', version: '1' })
  makeEscapeReport(metrics, silentLog)
  const text = await metrics.registry.metrics()
  const begun = [...text.matchAll(/^assay_sandbox_escape_attempts_total\{parser="(\w+)",.*\} 0$/gm)].map(
    ([, one]) => one,
  )
  assert.deepEqual(begun, Object.keys(policies))
  const tests = readText(`${dir}/prometheus-alerts.test.yml`)
  const [, parser = '', values = ''] = /assay_sandbox_escape\S+parser="(\w+)"\}\n\s+values: (.*)/.exec(tests) ?? []
  assert(begun.includes(parser), parser)
  assert.match(values, /^0x\d+ 1x\d+$/)
})

test('panels of the dashboard have a query, a unit and a place of their own', () => {
  type Panel = {
    title: string
    targets: { expr: string }[]
    fieldConfig: { defaults: { unit: string } }
    gridPos: object
  }
  const { panels } = JSON.parse(readText(`${dir}/grafana-dashboard.json`)) as { panels: Panel[] }
  for (const { title, targets, fieldConfig } of panels) {
    assert(targets.length > 0 && targets.every(({ expr }) => expr.length > 0), title)
    assert.notEqual(fieldConfig.defaults.unit, '', title)
  }
  assert.equal(new Set(panels.map(({ gridPos }) => JSON.stringify(gridPos))).size, panels.length)
})
