import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { settingDefinitions } from '../../src/config/settings.ts'
import { composeFiles, listManifests, manifestDir, readCompose, readText, readYaml, repository } from './files.ts'

const megabytes = (size: string) => {
  const [, count, unit] = /^(\d+)(mb|gb|Mi|Gi|M|G)$/.exec(size) ?? []
  return Number(count) * (unit?.startsWith('g') || unit?.startsWith('G') ? 1024 : 1)
}
const drainSeconds = Number(settingDefinitions.drainSeconds.fallback)

test('the Dockerfile knows every package that npm ci wants to see', () => {
  const { workspaces } = JSON.parse(readText('package.json')) as { workspaces: string[] }
  const ignored = readText('.dockerignore').split('\n')
  for (const dir of workspaces) {
    const isLetIn = ignored.includes(`!${dir}/package.json`) || ignored.includes(`!${dirname(dir)}`)
    assert(isLetIn, `.dockerignore keeps ${dir}/package.json out`)
  }
})

test('every image has a version, and the bases a digest', () => {
  const images = composeFiles.flatMap((file) => Object.values(readCompose(file).services).map(({ image }) => image))
  const bases = [...readText('Dockerfile').matchAll(/^ARG (?:DEBIAN|NODE)=(\S+)$/gm)].map(([, image]) => image ?? '')
  assert.equal(bases.length, 2)
  for (const image of images) assert.match(image, /:[\w.-]*\d+\.\d+[\w.-]*$/, image)
  for (const image of bases) assert.match(image, /:[\w.-]*\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}$/, image)
  const { version } = JSON.parse(readText('package.json')) as { version: string }
  assert(images.filter((image) => image.startsWith('assay:')).every((image) => image === `assay:${version}`))
  assert.match(readText(`${manifestDir}/kustomization.yaml`), new RegExp(`newTag: ${version}$`, 'm'))
})

test('the image does not run as root', () => {
  const text = readText('Dockerfile')
  assert.match(text.slice(text.lastIndexOf('FROM ')), /^USER 10001:10001$/m)
})

for (const file of composeFiles) {
  test(`${file}: nodes are confined, and what is clear stays in memory`, () => {
    const { services, secrets, volumes, configs = {} } = readCompose(file)
    const nodes = Object.values(services).filter(({ image }) => image.startsWith('assay:'))
    assert(nodes.length > 0)
    for (const node of nodes) {
      assert.equal(node.read_only, true)
      assert.deepEqual(node.cap_drop, ['ALL'])
      assert.deepEqual(node.security_opt, ['no-new-privileges:true'])
      const scratch = Number(node.environment?.ASSAY_SCRATCH_MB ?? settingDefinitions.scratchMegabytes.fallback)
      assert.equal(megabytes(node.shm_size ?? ''), scratch)
      assert.equal(node.memswap_limit, node.mem_limit)
      assert(Number.parseInt(node.stop_grace_period ?? '', 10) > 2 * drainSeconds)
      for (const [name, value] of Object.entries(node.environment ?? {})) {
        if (name.endsWith('_FILE')) assert(node.secrets?.includes(value.replace('/run/secrets/', '')), name)
      }
    }
    for (const service of Object.values(services)) {
      for (const name of service.secrets ?? []) assert(name in secrets, name)
      for (const volume of service.volumes ?? []) assert((volume.split(':')[0] ?? '') in volumes, volume)
    }
    for (const config of Object.values(configs)) assert(existsSync(join(repository, config.file)), config.file)
  })

  test(`${file}: make-secrets.sh makes every secret, and leaves those that are there`, () => {
    const home = mkdtempSync(join(tmpdir(), 'assay-secrets-'))
    try {
      const script = join(home, 'packaging', 'make-secrets.sh')
      execFileSync('mkdir', [dirname(script)])
      writeFileSync(script, readText('packaging/make-secrets.sh'))
      const run = () => execFileSync('sh', [script], { encoding: 'utf8' })
      const read = () =>
        Object.values(readCompose(file).secrets).map((secret) =>
          execFileSync('cat', [join(home, secret.file)], { encoding: 'utf8' }),
        )
      run()
      const made = read()
      assert(made.every((text) => text.length >= 20))
      run()
      assert.deepEqual(read(), made)
    } finally {
      rmSync(home, { recursive: true })
    }
  })
}

type Pod = {
  terminationGracePeriodSeconds: number
  enableServiceLinks: boolean
  securityContext: { runAsNonRoot: boolean }
  containers: {
    securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean }
    volumeMounts: { name: string; mountPath: string }[]
    lifecycle: { preStop: { exec: { command: [string, string] } } }
  }[]
  volumes: { name: string; emptyDir?: { medium?: string; sizeLimit: string } }[]
}

for (const role of ['api', 'worker']) {
  test(`Kubernetes: the ${role} is confined, and has the time to drain`, () => {
    const [deployment] = readYaml<{ spec: { template: { spec: Pod } } }>(`${manifestDir}/${role}.yaml`)
    const pod = deployment?.spec.template.spec as Pod
    const [container] = pod.containers
    assert.equal(pod.securityContext.runAsNonRoot, true)
    assert.equal(container?.securityContext.readOnlyRootFilesystem, true)
    assert.equal(container?.securityContext.allowPrivilegeEscalation, false)
    // Otherwise a service named assay sets ASSAY_PORT to an address.
    assert.equal(pod.enableServiceLinks, false)
    const shm = container?.volumeMounts.find(({ mountPath }) => mountPath === '/dev/shm')?.name
    const scratch = pod.volumes.find(({ name }) => name === shm)?.emptyDir
    const settings = readText(`${manifestDir}/settings.env`)
    const find = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(settings)?.[1])
    assert.deepEqual([scratch?.medium, megabytes(scratch?.sizeLimit ?? '')], ['Memory', find('ASSAY_SCRATCH_MB')])
    const preStop = Number(container?.lifecycle.preStop.exec.command[1])
    assert(pod.terminationGracePeriodSeconds > preStop + 2 * find('ASSAY_DRAIN_SECONDS'))
  })
}

test('Kubernetes: the two roles differ in name and size alone', () => {
  const [api, worker] = ['api', 'worker'].map((role) =>
    readText(`${manifestDir}/${role}.yaml`)
      .replaceAll(new RegExp(`\\b${role}\\b`, 'g'), 'ROLE')
      .replace(/cpu: \S+/, ''),
  )
  assert.equal(api, worker)
})

test('Kubernetes: every resource of the kustomization is there and is YAML', () => {
  const [{ resources } = { resources: [] }] = readYaml<{ resources: string[] }>(`${manifestDir}/kustomization.yaml`)
  const files = listManifests()
  for (const name of resources) assert(files.includes(`${manifestDir}/${name}`), name)
  for (const file of files) {
    for (const document of readYaml<{ apiVersion?: string; kind?: string }>(file)) {
      assert(document.apiVersion !== undefined && document.kind !== undefined, file)
    }
  }
})

const analyzer = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' }).status === 0
test('systemd takes the unit, and finds it well confined', { skip: !analyzer }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-unit-'))
  try {
    const unit = join(dir, 'assay.service')
    // verify looks whether the programs are there.
    writeFileSync(unit, readText('packaging/systemd/assay.service').replaceAll('/opt/assay/', repository))
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    assert.equal(verified.stderr, '')
    assert.equal(verified.status, 0)
    const rated = ['security', '--offline=true', '--threshold=20', unit]
    const { status, stdout } = spawnSync('systemd-analyze', rated, { encoding: 'utf8' })
    assert.equal(status, 0, stdout.split('\n').slice(-3).join('\n'))
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('the unit gives the service the time to drain', () => {
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(readText('packaging/systemd/assay.service')) ?? []
  assert(Number(seconds) > 2 * drainSeconds)
})
