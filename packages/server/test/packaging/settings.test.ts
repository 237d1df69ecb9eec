import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load-config.ts'
import { settingDefinitions } from '../../src/config/settings.ts'
import { composeFiles, listManifests, manifestDir, readCompose, readText, repository } from './files.ts'

const secrets = Object.values(settingDefinitions).filter((definition) => 'secret' in definition)
const known = new Set([
  ...Object.values(settingDefinitions).map(({ env }) => env),
  ...secrets.map(({ env }) => `${env}_FILE`),
])

const packaged = [
  'Dockerfile',
  ...composeFiles,
  'packaging/systemd/assay.service',
  'packaging/nginx.conf',
  `${manifestDir}/settings.env`,
  ...listManifests(),
]

for (const file of packaged) {
  test(`${file} names only settings that there are`, () => {
    const text = readText(file).replaceAll(/^\s*#.*$/gm, '')
    const named = new Set(text.match(/\bASSAY_[A-Z0-9_]+/g) ?? [])
    assert.deepEqual(
      [...named].filter((name) => !known.has(name)),
      [],
    )
  })
}

test('the values that are packaged can be read', () => {
  const nodes = composeFiles.flatMap((file) => Object.values(readCompose(file).services))
  const environments = [
    ...nodes.map(({ environment }) => environment ?? {}),
    readAssignments(`${manifestDir}/settings.env`),
    readAssignments('Dockerfile'),
    readAssignments('packaging/systemd/assay.service'),
  ]
  for (const environment of environments) assert.deepEqual(loadConfig(toKnown(environment)).warnings, [])
  assert.equal(readAssignments('Dockerfile').ASSAY_HOST, '0.0.0.0')
})

test('nodes behind a packaged proxy trust it, and the proxy replaces what clients claim', () => {
  const { environment } = readCompose('compose.cluster.yaml').services['api-1'] ?? {}
  for (const trusted of [environment, readAssignments(`${manifestDir}/settings.env`)]) {
    const { config } = loadConfig({ ASSAY_TRUSTED_PROXIES: trusted?.ASSAY_TRUSTED_PROXIES })
    assert(config.trustedProxies.length > 0)
    assert(!config.trustedProxies.some((network) => network.endsWith('/0')))
  }
  const haproxy = readText('packaging/haproxy.cfg')
  assert(haproxy.indexOf('http-request del-header X-Forwarded-For') < haproxy.indexOf('option forwardfor'))
  const nginx = readText('packaging/nginx.conf')
  assert.match(nginx, /proxy_set_header X-Forwarded-For \$remote_addr;/)
  const [, networks] = /ASSAY_TRUSTED_PROXIES=(\S+)/.exec(nginx) ?? []
  assert.deepEqual(loadConfig({ ASSAY_TRUSTED_PROXIES: networks }).config.trustedProxies, ['127.0.0.1/32', '::1/128'])
})

const hasNginx = spawnSync('nginx', ['-v']).error === undefined
test('nginx accepts its file', { skip: !hasNginx && 'nginx is not installed' }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-nginx-'))
  try {
    const certificate = join(repository, 'acceptance/support/certificates/first')
    const site = readText('packaging/nginx.conf')
      .replace(/(ssl_certificate) .*;/, `$1 ${certificate}.crt;`)
      .replace(/(ssl_certificate_key) .*;/, `$1 ${certificate}.key;`)
    writeFileSync(join(dir, 'nginx.conf'), `pid ${dir}/pid; events {} http { access_log off; ${site} }`)
    const { status, stderr } = spawnSync('nginx', ['-t', '-e', 'stderr', '-c', join(dir, 'nginx.conf')], {
      encoding: 'utf8',
    })
    assert.equal(status, 0, stderr)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

const readAssignments = (file: string): Record<string, string> =>
  Object.fromEntries([...readText(file).matchAll(/\b(ASSAY_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]))

/** What lies in files that are not here. */
const inFiles: Record<string, string> = {
  ASSAY_DATABASE_URL: 'postgres://assay:secret@database/assay',
  ASSAY_MASTER_KEY: '0'.repeat(64),
}

const toKnown = (environment: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(environment).map(([name, value]) => {
      const setting = name.replace(/_FILE$/, '')
      return setting === name ? [name, value] : [setting, inFiles[setting] ?? 'something-secret']
    }),
  )
