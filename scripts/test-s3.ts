import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { installPackages } from '../acceptance/support/install-packages.ts'

const stores = ['account', 'container', 'object'] as const
const servers = ['memcached', ...stores, 'proxy'] as const
type Server = (typeof servers)[number]

const toProgram = (server: Server) => `/usr/bin/${server === 'memcached' ? server : `swift-${server}-server`}`
const toPackage = (server: Server) => (server === 'memcached' ? server : `swift-${server}`)
const isInstalled = () => servers.map(toProgram).every(existsSync)
const credentials = { accessKey: 'test:tester', secretKey: 'a-secret-of-the-tests' }
const region = 'us-east-1'
const bucket = 'assay-test'
/** Hosts below this name are buckets. It does not resolve. */
const storageDomain = 's3.assay.test'

/** Returns the reason to skip tests that need S3, or false when the machine has a server. */
export function lacksTestS3(): string | false {
  if (process.env.ASSAY_TEST_EXTERNAL !== undefined) return 'tested in the run on the embedded database'
  installSwift()
  return isInstalled() ? false : 'OpenStack Swift is not installed, and only root may install it'
}

/**
 * Installs OpenStack Swift from Debian, which implements S3: signatures, multipart uploads, ranges. A policy keeps its
 * packages from starting services.
 */
function installSwift() {
  if (isInstalled() || process.getuid?.() !== 0) return
  const policy = '/usr/sbin/policy-rc.d'
  const isTemporary = !existsSync(policy)
  if (isTemporary) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    installPackages(servers.map(toPackage))
  } finally {
    if (isTemporary) rmSync(policy, { force: true })
  }
}

/** Starts a store on free loopback ports with an empty bucket. `close` removes it with all files. */
export async function openTestS3() {
  const lack = lacksTestS3()
  if (lack !== false) throw new Error(lack)
  const dir = mkdtempSync(join(tmpdir(), 'assay-test-s3-'))
  const devices = join(dir, 'devices')
  mkdirSync(join(devices, 'd1'), { recursive: true })
  const ports = Object.fromEntries(
    await Promise.all(servers.map(async (server) => [server, await findFreePort()])),
  ) as Record<Server, number>
  writeSettings(dir, devices, ports)
  buildRings(dir, ports)

  const running = new Map<Server, ChildProcess>()
  const start = (server: Server) => {
    const log = openSync(join(dir, `${server}.log`), 'a')
    const memory = ['-l', '127.0.0.1', '-p', String(ports.memcached), '-m', '16', '-u', userInfo().username]
    const args = server === 'memcached' ? memory : [join(dir, `${server}-server.conf`), '--verbose']
    const child = spawn(toProgram(server), args, { cwd: dir, stdio: ['ignore', log, log] })
    closeSync(log)
    running.set(server, child)
  }
  const stop = async (server: Server, signal: NodeJS.Signals = 'SIGKILL') => {
    const child = running.get(server)
    running.delete(server)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }
  const close = async () => {
    await Promise.all(servers.map((server) => stop(server)))
    rmSync(dir, { recursive: true, force: true })
  }

  const endpoint = `http://127.0.0.1:${ports.proxy}`
  try {
    servers.forEach(start)
    await Promise.all(servers.map((server) => waitForServer(ports[server])))
    await createBucket(endpoint)
  } catch (error) {
    const logs = servers.map((server) => readFileSync(join(dir, `${server}.log`), 'utf8')).join('\n')
    await close()
    throw new Error(`Swift did not start: ${logs}`, { cause: error })
  }
  return {
    ...toStore({ endpoint, filesDir: devices }),
    /** Process id of a server, for tests that send signals: a store hangs after SIGSTOP to its proxy. */
    findPid: (server: Server) => running.get(server)?.pid,
    /** Makes the store refuse connections until `resume`. */
    halt: () => stop('proxy'),
    async resume() {
      start('proxy')
      await waitForServer(ports.proxy)
    },
    close,
  }
}

/** Returns the store that the test run shares, because a start takes seconds, or starts one. */
export async function joinTestS3(): Promise<TestS3> {
  const handle = process.env.ASSAY_TEST_S3
  return handle === undefined ? openTestS3() : { ...toStore(JSON.parse(handle)), async close() {} }
}

export type TestS3 = ReturnType<typeof toStore> & { close(): Promise<void> }

/** `filesDir` is the directory in which the store writes all files. */
function toStore({ endpoint, filesDir }: { endpoint: string; filesDir: string }) {
  return {
    endpoint,
    region,
    bucket,
    filesDir,
    storageDomain,
    ...credentials,
    /** Value of ASSAY_BLOBS. */
    blobsUrl: `s3://${bucket}?endpoint=${endpoint}&region=${region}`,
    /** Value of ASSAY_BLOBS with a prefix, which keeps the users of one store apart. */
    toBlobsUrl: (prefix: string) => `s3://${bucket}/${prefix}?endpoint=${endpoint}&region=${region}`,
    async listNames(prefix: string): Promise<string[]> {
      const client = newClient(endpoint)
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }))
      client.destroy()
      return Contents.map(({ Key = '' }) => Key)
    },
    /** Text from which another process makes the same object, as ASSAY_TEST_S3. */
    handle: JSON.stringify({ endpoint, filesDir }),
  }
}

/** Each server is a single process, so that it can be ended by its id. Time limits are long, for busy machines. */
function writeSettings(dir: string, devices: string, ports: Record<Server, number>) {
  writeFileSync(
    join(dir, 'swift.conf'),
    '[swift-hash]\nswift_hash_path_suffix = tests\n[storage-policy:0]\nname = one\ndefault = yes\n',
  )
  const shared = (port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${dir}
devices = ${devices}
mount_check = false
log_level = WARNING
`
  for (const server of stores) {
    writeFileSync(
      join(dir, `${server}-server.conf`),
      `${shared(ports[server])}
[pipeline:main]
pipeline = ${server}-server
[app:${server}-server]
use = egg:swift#${server}
`,
    )
  }
  const filters = ['catch_errors', 'gatekeeper', 'listing_formats', 'bulk', 'copy', 'slo', 'versioned_writes']
  writeFileSync(
    join(dir, 'proxy-server.conf'),
    `${shared(ports.proxy)}
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats bulk s3api tempauth copy slo versioned_writes proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 10
node_timeout = 60
error_suppression_limit = 1000
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${credentials.secretKey} .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${ports.memcached}
[filter:s3api]
use = egg:swift#s3api
location = ${region}
storage_domain = ${storageDomain}
allowable_clock_skew = 172800
${filters.map((filter) => `[filter:${filter}]\nuse = egg:swift#${filter}\n`).join('')}`,
  )
}

/** Builds all rings in one process: each call of Swift's own program takes a second. */
function buildRings(dir: string, ports: Record<Server, number>) {
  const build = stores.map((server) => {
    const device = `{'id': 0, 'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': ${ports[server]}, 'device': 'd1', 'weight': 1}`
    return `ring = RingBuilder(4, 1, 0); ring.add_dev(${device}); ring.rebalance(); ring.get_ring().save('${server}.ring.gz')`
  })
  const program = ['from swift.common.ring import RingBuilder', ...build].join('\n')
  execFileSync('/usr/bin/python3', ['-c', program], { cwd: dir, stdio: 'pipe' })
}

function newClient(endpoint: string): S3Client {
  const { accessKey: accessKeyId, secretKey: secretAccessKey } = credentials
  const shared = { endpoint, region, forcePathStyle: true, maxAttempts: 8 }
  return new S3Client({ ...shared, credentials: { accessKeyId, secretAccessKey } })
}

async function createBucket(endpoint: string) {
  const client = newClient(endpoint)
  await client.send(new CreateBucketCommand({ Bucket: bucket }))
  client.destroy()
}

async function waitForServer(port: number) {
  for (let left = 600; left > 0; left--) {
    if (await accepts(port)) return
    await sleep(50)
  }
  throw new Error(`Nothing listens on port ${port}`)
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
