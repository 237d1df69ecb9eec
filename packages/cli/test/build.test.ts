import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { maxContentBytes } from '@assay/contract'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { limits } from '../src/scanning/limits.ts'
import { versionText } from '../src/version.ts'
import { newEnv, openDir } from './run-cli.ts'

const packages = new URL('../../', import.meta.url).pathname
const service = getSharedService()

test('the limits are those of the service', () => {
  assert.deepEqual({ malware: limits.malware, nsfw_image: limits.nsfw }, maxContentBytes)
})

test('the built package runs beside the built client, and needs nothing else', { skip: alreadyTested }, async (t) => {
  const dir = openDir(t)
  // Compiled with the types of Node 18: nothing newer is used.
  for (const name of ['client', 'cli']) {
    const to = join(dir, 'node_modules/@assay', name)
    mkdirSync(to, { recursive: true })
    execFileSync(process.execPath, ['../../scripts/build-package.ts', to], { cwd: packages + name, stdio: 'pipe' })
  }
  const root = join(dir, 'node_modules/@assay/cli')
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.deepEqual(manifest.dependencies, { '@assay/client': manifest.version })
  assert.equal(manifest.version, versionText)
  assert.equal(manifest.private, undefined)
  const main = join(root, manifest.bin['assay-scan'])
  assert(readFileSync(main, 'utf8').startsWith('#!/usr/bin/env node\n'))
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))) {
    assert.doesNotMatch(
      readFileSync(join(root, name), 'utf8'),
      /from '[^']*\.ts'|import\('[^']*\.ts'\)|@assay\/contract/,
      name,
    )
  }
  const { api_key: apiKey } = await service.createAccount()
  writeFileSync(join(dir, 'a.txt'), 'good morning')
  const env = newEnv(dir, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [main, ...args], { cwd: dir, env, encoding: 'utf8' })
  assert.equal(run('--version'), `assay-scan ${versionText}\n`)
  assert.equal(run('--no-summary', 'a.txt'), 'a.txt: OK\n')
  assert.match(run('me'), /^Service /)
})
