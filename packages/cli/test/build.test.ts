import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { imageFormats, maxContentBytes, maxFileNameLength } from '@assay/contract'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { versionText } from '../src/command-line/commands.ts'
import { imageExtensions, limits, maxNameLength } from '../src/scanning/limits.ts'
import { testPipelines } from './pipeline-rules.ts'
import { newEnv } from './run-cli.ts'

const packages = fileURLToPath(new URL('../../', import.meta.url))
const service = getSharedService()

test('the limits equal those of the contract', () => {
  assert.deepEqual({ malware: limits.malware, nsfw_image: limits.nsfw }, maxContentBytes)
  assert.equal(maxNameLength, maxFileNameLength)
  assert.deepEqual(imageExtensions, Object.values(imageFormats).flat())
})

describe('the packed file', { skip: alreadyTested }, () => {
  let dir = ''
  let tarball = ''
  let env: NodeJS.ProcessEnv = {}
  /** Pipelines run dozens of programs. The Node of the tests, which may be newer than the machine's, caches their code. */
  const toPipelineEnv = () => ({ ...env, PATH: `${dirname(process.execPath)}:${env.PATH}` })
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-cli-'))
    // The build uses the types of Node 18, so it fails if the code uses anything newer.
    const build = ['../../scripts/build-package.ts', join(dir, 'dist')]
    execFileSync(process.execPath, build, { cwd: `${packages}cli`, stdio: 'pipe' })
    execFileSync('npm', ['pack', './dist'], { cwd: dir, stdio: 'pipe' })
    rmSync(join(dir, 'dist'), { recursive: true })
    tarball = join(dir, `assay-cli-${versionText}.tgz`)
    const { api_key: apiKey } = await service.createAccount()
    env = newEnv(dir, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('installs by itself, as documented, and runs', () => {
    const install = ['install', '--global', '--offline', '--prefix', dir, tarball]
    execFileSync('npm', install, { cwd: dir, stdio: 'pipe' })
    const root = join(dir, 'lib/node_modules/@assay/cli')
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    assert.deepEqual(manifest.dependencies, { '@assay/client': manifest.version })
    assert.equal(manifest.version, versionText)
    assert.equal(manifest.private, undefined)
    const scripts = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
    for (const name of scripts) {
      assert.doesNotMatch(
        readFileSync(join(root, name), 'utf8'),
        /from '[^']*\.ts'|import\('[^']*\.ts'\)|@assay\/contract/,
        name,
      )
    }
    writeFileSync(join(dir, 'a.txt'), 'good morning')
    const run = (...args: string[]) =>
      execFileSync(join(dir, 'bin/assay-scan'), args, { cwd: dir, env, encoding: 'utf8' })
    assert.equal(run('--version'), `assay-scan ${versionText}\n`)
    assert.equal(run('--no-summary', 'a.txt'), 'a.txt: OK\n')
    assert.match(run('me'), /^Service /)
  })

  describe('in pipelines', () => testPipelines({ dir: () => dir, tarball: () => tarball, env: toPipelineEnv }))
})
