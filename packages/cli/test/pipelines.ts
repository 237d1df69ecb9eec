import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

const packaging = fileURLToPath(new URL('../../../packaging/', import.meta.url))

type Action = {
  name: string
  description: string
  inputs: Record<string, { description: string; required: boolean; default?: string }>
  outputs: Record<string, { description: string; value: string }>
  runs: { using: string; steps: ActionStep[] }
}
type ActionStep = { name: string; id?: string; shell: string; env: Record<string, string>; run: string }

export const readAction = () => parse(readFileSync(`${packaging}github-action/action.yml`, 'utf8')) as Action

type GitlabJob = {
  stage: string
  image: string
  variables: Record<string, string>
  script: string[]
  artifacts: { when: string; paths: string[] }
}

export const readGitlabTemplate = () =>
  parse(readFileSync(`${packaging}gitlab/assay-scan.gitlab-ci.yml`, 'utf8')) as Record<string, GitlabJob>

export type PipelineRun = { code: number; out: string; outputs: Record<string, string>; summary: string }

/**
 * Runs the steps of the action as GitHub's runner does: inputs with their defaults replace the expressions in `env`, each
 * script runs in bash with `-eo pipefail`, and outputs come from the file in GITHUB_OUTPUT. Installing takes most of the
 * processor time, so the first run does it for all.
 */
export function runAction(dir: string, env: NodeJS.ProcessEnv, inputs: Record<string, string>): PipelineRun {
  const action = readAction()
  const temp = env.RUNNER_TEMP ?? join(dir, '..', 'runner')
  mkdirSync(temp, { recursive: true })
  const files = { GITHUB_OUTPUT: join(temp, 'output'), GITHUB_STEP_SUMMARY: join(temp, 'summary') }
  for (const path of Object.values(files)) writeFileSync(path, '')
  const given = {
    ...env,
    ...files,
    RUNNER_TEMP: temp,
    GITHUB_WORKSPACE: dir,
    GITHUB_ACTION_PATH: `${packaging}github-action`,
  }
  const toValue = (text: string) =>
    text.replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, name) => inputs[name] ?? action.inputs[name]?.default ?? '')
  let result = { code: 0, out: '' }
  const isInstalled = existsSync(join(temp, 'assay-cli'))
  for (const { env: own, run } of action.runs.steps.slice(isInstalled ? 1 : 0)) {
    const values = Object.fromEntries(Object.entries(own).map(([name, text]) => [name, toValue(text)]))
    const args = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run]
    result = runShell('bash', args, { ...given, ...values }, dir, result.out)
    if (result.code !== 0) break
  }
  const lines = readFileSync(files.GITHUB_OUTPUT, 'utf8').trim().split('\n')
  const outputs = Object.fromEntries(lines.map((line) => line.split('=', 2) as [string, string]))
  return { ...result, outputs, summary: readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8') }
}

/** Runs the script of the GitLab job as its runner does: the lines after each other in one shell that ends on errors. */
export function runGitlabJob(dir: string, env: NodeJS.ProcessEnv, variables: Record<string, string>) {
  const job = readGitlabTemplate()['assay-scan']
  const install = variables.ASSAY_INSTALL_DIR ?? join(dir, '..', 'gitlab-cli')
  const lines = (job?.script ?? ['exit 99']).slice(existsSync(install) ? 1 : 0)
  const given = { ...env, ...job?.variables, ASSAY_INSTALL_DIR: install, ...variables }
  return runShell('sh', ['-c', ['set -e', ...lines].join('\n')], given, dir)
}

function runShell(shell: string, args: string[], env: NodeJS.ProcessEnv, cwd: string, before = '') {
  const { status, stdout, stderr } = spawnSync(shell, args, { cwd, env, encoding: 'utf8', timeout: 120_000 })
  return { code: status ?? -1, out: `${before}${stdout}${stderr}` }
}
