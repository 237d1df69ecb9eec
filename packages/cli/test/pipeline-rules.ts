import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eicar, newEncryptedDocx } from '../../../acceptance/support/archives.ts'
import { lacksClamAv } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { readAction, readGitlabTemplate, runAction, runGitlabJob } from './pipelines.ts'

const lacking = await lacksClamAv(getSharedService().url)

/** Rules of the GitHub Action and the GitLab template, whose scripts run with the packed file against a service. */
export function testPipelines(subject: { dir(): string; tarball(): string; env(): NodeJS.ProcessEnv }) {
  /** Makes a directory as a checkout, in which `artefact` has the given files. */
  function makeWorkspace(files: Record<string, Buffer | string>): string {
    const dir = join(subject.dir(), `work-${Math.random()}`)
    mkdirSync(join(dir, 'artefact'), { recursive: true })
    for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, 'artefact', name), content)
    return dir
  }
  const onGithub = (dir: string, inputs: Record<string, string> = {}, env: NodeJS.ProcessEnv = {}) => {
    const url = String(subject.env().ASSAY_URL)
    // The runner does not set ASSAY_URL: the input does.
    const given = { ...subject.env(), ASSAY_URL: '', ...env }
    return runAction(dir, given, { url, path: 'artefact', package: subject.tarball(), ...inputs })
  }
  const onGitlab = (dir: string, variables: Record<string, string> = {}) =>
    runGitlabJob(dir, subject.env(), {
      ASSAY_SCAN_PATH: 'artefact',
      ASSAY_PACKAGE: subject.tarball(),
      ...variables,
    })
  const clean = { 'notes.txt': 'good morning' }
  const infected = { ...clean, 'a|b`<i>.com': eicar }
  const locked = { ...clean, 'locked.docx': newEncryptedDocx() }

  test('the action takes values by the environment only, uses no other action, and installs no default', () => {
    const { inputs, outputs, runs, name, description } = readAction()
    assert.ok(name !== '' && description.length < 125)
    assert.equal(runs.using, 'composite')
    // Anybody could publish a package under a name that Assay has not published yet.
    assert.deepEqual([inputs.package?.required, inputs.package?.default], [true, undefined])
    assert.equal(inputs['fail-on']?.default, 'error')
    assert.deepEqual(Object.keys(inputs), ['url', 'path', 'fail-on', 'package'], 'a key would be shown in the log')
    for (const step of runs.steps) {
      assert.deepEqual(
        Object.keys(step).filter((key) => !['name', 'id', 'shell', 'env', 'run'].includes(key)),
        [],
      )
      assert.equal(step.shell, 'bash')
      assert.doesNotMatch(step.run, /\$\{\{/, 'an expression in a script lets inputs run commands')
    }
    for (const [output, { value }] of Object.entries(outputs))
      assert.equal(value, `\${{ steps.scan.outputs.${output} }}`)
    const job = readGitlabTemplate()['assay-scan']
    assert.equal(job?.variables.ASSAY_PACKAGE, undefined)
    const nowhere = join(subject.dir(), 'not-installed')
    const withoutPackage = onGitlab(makeWorkspace(clean), { ASSAY_PACKAGE: '', ASSAY_INSTALL_DIR: nowhere })
    assert.notEqual(withoutPackage.code, 0)
    assert.match(withoutPackage.out, /ASSAY_PACKAGE: must be set/)
    assert.equal(job?.variables.ASSAY_API_KEY, undefined)
    assert.equal(job?.artifacts.when, 'always')
  })

  test('a clean directory passes', { skip: lacking }, () => {
    const dir = makeWorkspace(clean)
    const { code, out, outputs, summary } = onGithub(dir)
    assert.equal(code, 0, out)
    const { report = '', ...counts } = outputs
    assert.deepEqual(counts, { status: 'clean', files: '1', threats: '0', errors: '0', skipped: '0' })
    assert.match(readFileSync(report, 'utf8'), /^\{"path":"artefact\/notes\.txt",.*"status":"clean"/m)
    assert.match(summary, /^### Assay scan: clean\n/)
    assert.doesNotMatch(out, /^::/m)
    const job = onGitlab(dir)
    assert.equal(job.code, 0, job.out)
    assert.ok(existsSync(join(dir, 'assay-scan.jsonl')))
  })

  test('a threat fails, with an annotation, a row and outputs', { skip: lacking }, () => {
    const dir = makeWorkspace(infected)
    const { code, out, outputs, summary } = onGithub(dir, { path: 'nothing-*.txt\nartefact' })
    assert.equal(code, 1, out)
    assert.equal(outputs.status, 'threat')
    assert.equal(outputs.threats, '1')
    assert.match(out, /^::error file=artefact\/a\|b`<i>\.com,title=Threat found::.*Virus:Eicar-Test-Signature$/m)
    assert.match(summary, /&#124;b&#96;&#60;i&#62;\.com \| threat \| Virus&#58;Eicar-Test-Signature \|\n/)
    const job = onGitlab(dir)
    assert.equal(job.code, 1, job.out)
    assert.match(job.out, /"status":"threat"/)
    assert.match(readFileSync(join(dir, 'assay-scan.jsonl'), 'utf8'), /"status":"threat"/)
    const reported = onGithub(dir, { 'fail-on': 'never' })
    assert.deepEqual([reported.code, reported.outputs.status], [0, 'threat'], reported.out)
    assert.equal(onGitlab(dir, { ASSAY_FAIL_ON: 'threat' }).code, 1)
    assert.equal(onGitlab(dir, { ASSAY_FAIL_ON: 'never' }).code, 0)
  })

  test('content that cannot be scanned fails, unless only threats are to fail', { skip: lacking }, () => {
    const dir = makeWorkspace(locked)
    const { code, out, outputs } = onGithub(dir)
    assert.deepEqual([code, outputs.status, outputs.errors], [1, 'error', '1'], out)
    assert.match(out, /^::error file=artefact\/locked\.docx,title=Not scanned::.*EncryptedContent/m)
    const lenient = onGithub(dir, { 'fail-on': 'threat' })
    assert.equal(lenient.code, 0, lenient.out)
    assert.match(lenient.out, /^::warning file=artefact\/locked\.docx/m)
    assert.equal(onGitlab(dir).code, 2)
    assert.equal(onGitlab(dir, { ASSAY_FAIL_ON: 'threat' }).code, 0)
  })

  test('a symbolic link is not scanned, which fails unless only threats are to fail', { skip: lacking }, () => {
    const dir = makeWorkspace(clean)
    symlinkSync('/etc/hostname', join(dir, 'artefact/link'))
    const { code, out, outputs, summary } = onGithub(dir)
    assert.deepEqual([code, outputs.status, outputs.errors, outputs.skipped], [1, 'error', '0', '1'], out)
    assert.match(out, /^::error file=artefact\/link,title=Not scanned::.*Symbolic link$/m)
    assert.match(summary, /link \| skipped \| Symbolic link \|\n/)
    assert.equal(onGithub(dir, { 'fail-on': 'threat' }).code, 0)
    const job = onGitlab(dir)
    assert.equal(job.code, 2, job.out)
    assert.match(job.out, /^Not scanned: 1 links or special files$/m)
    assert.equal(onGitlab(dir, { ASSAY_FAIL_ON: 'threat' }).code, 0)
  })

  test('a threat fails also if assay-scan is killed after it reported one', () => {
    const dir = makeWorkspace(clean)
    const [runner, install] = [join(subject.dir(), 'killed/runner'), join(subject.dir(), 'killed/gitlab-cli')]
    for (const bin of [`${runner}/assay-cli/node_modules/.bin`, `${install}/node_modules/.bin`]) {
      mkdirSync(bin, { recursive: true })
      const line = '{"path":"artefact/notes.txt","status":"threat","signals":["Virus:Test"]}'
      writeFileSync(join(bin, 'assay-scan'), `#!/bin/sh\necho '${line}'\nkill -9 $$\n`, { mode: 0o755 })
    }
    for (const level of ['error', 'threat']) {
      const job = onGitlab(dir, { ASSAY_FAIL_ON: level, ASSAY_INSTALL_DIR: install })
      assert.equal(job.code, 1, job.out)
    }
    const step = onGithub(dir, { 'fail-on': 'threat' }, { RUNNER_TEMP: runner })
    assert.deepEqual([step.code, step.outputs.status], [1, 'threat'], step.out)
  })

  test('without a service, a valid key, files or a valid setting the step fails', () => {
    const dir = makeWorkspace({})
    const empty = onGithub(dir)
    assert.deepEqual([empty.code, empty.outputs.status], [1, 'error'], empty.out)
    assert.match(empty.out, /^::error::No file was scanned/m)
    assert.equal(onGitlab(dir).code, 2)
    writeFileSync(join(dir, 'artefact/notes.txt'), 'good morning')
    const gone = onGithub(dir, { url: 'http://127.0.0.1:9' })
    assert.deepEqual([gone.code, gone.outputs.status], [1, 'error'], gone.out)
    assert.match(gone.out, /Cannot reach/)
    assert.equal(onGithub(dir, {}, { ASSAY_API_KEY: 'wrong' }).code, 1)
    assert.equal(onGithub(dir, { path: 'misspelt' }).code, 1)
    const misspelt = onGithub(dir, { 'fail-on': 'threats' })
    assert.equal(misspelt.code, 1)
    assert.match(misspelt.out, /^::error::fail-on must be one of/m)
    assert.equal(onGitlab(dir, { ASSAY_URL: 'http://127.0.0.1:9' }).code, 2)
    assert.equal(onGitlab(dir, { ASSAY_FAIL_ON: 'threats' }).code, 2)
  })
}
