import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { dataRoot } from '../acceptance/support/data-root.ts'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { waitUntil } from '../acceptance/support/wait-until.ts'

const run = promisify(execFile)
const scope = 'assay-soak'
const password = 'p4ssword'
const startTimeoutMs = 180_000
/** The smallest times that Patroni accepts with this ttl; it promotes another node when the ttl is over. */
const times = { ttl: 20, loop_wait: 5, retry_timeout: 5 }

type Node = { name: string; port: number; restPort: number; dir: string; patroni: ChildProcess }
type Member = { name: string; role: string; state: string }

/** PostgreSQL 15 of Debian on three nodes with synchronous replication, managed by Patroni with etcd. */
export async function openPatroni() {
  const { dir, owner, etcd, nodes, startPatroni } = await startNodes()
  const findNode = (name: string) => {
    const node = nodes.find((one) => one.name === name)
    if (node === undefined) throw new Error(`there is no node ${name}`)
    return node
  }
  const readLog = (name: string) => readFileSync(join(dir, `${name}.log`), 'utf8')

  async function listMembers(): Promise<Member[]> {
    for (const { restPort } of nodes) {
      const answer = await fetch(`http://127.0.0.1:${restPort}/cluster`, { signal: AbortSignal.timeout(2000) }).catch(
        () => undefined,
      )
      if (answer?.ok) return ((await answer.json()) as { members: Member[] }).members
    }
    return []
  }

  /** Waits for a primary and two standbys that stream, one of them synchronous. */
  async function waitUntilHealthy() {
    await waitUntil(
      'the cluster of Patroni to be healthy',
      async () => {
        const members = await listMembers()
        const isUp = ({ state }: Member) => state === 'running' || state === 'streaming'
        const roles = members.filter(isUp).map(({ role }) => role)
        return roles.length === nodes.length && roles.includes('leader') && roles.includes('sync_standby')
      },
      startTimeoutMs,
    ).catch((error: Error) => {
      const logs = nodes.map(({ name }) => `${name}:\n${readLog(name).slice(-1500)}`)
      throw new Error(`${error.message}\n${logs.join('\n')}`)
    })
  }

  async function findLeader(): Promise<Node> {
    const leader = (await listMembers()).find(({ role }) => role === 'leader')
    return findNode(leader?.name ?? 'none')
  }

  return {
    waitUntilHealthy,
    findLeader,
    /** Creates a database for a role that is no superuser, and returns its URL with all nodes. */
    async createDatabase(name: string): Promise<string> {
      const { port } = await findLeader()
      const admin = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password, database: 'postgres' })
      await admin.connect()
      try {
        const { rowCount } = await admin.query("select from pg_roles where rolname = 'tester'")
        if (rowCount === 0) await admin.query(`create role tester login password '${password}'`)
        await admin.query(`create database ${name} owner tester`)
      } finally {
        await admin.end()
      }
      return `postgres://tester:${password}@${nodes.map((node) => `127.0.0.1:${node.port}`).join(',')}/${name}`
    },
    /** Ends all processes of a node at once, as a power cut does. */
    kill: (node: Node) => signal(listProcesses(node), 'SIGKILL'),
    /** Starts a node again after `kill`. */
    restart(node: Node) {
      node.patroni = startPatroni(node.name)
    },
    freeze: (node: Node) => signal(listProcesses(node), 'SIGSTOP'),
    thaw: (node: Node) => signal(listProcesses(node), 'SIGCONT'),
    async switchOver(from: Node) {
      const config = join(dir, `${from.name}.json`)
      const args = ['-c', config, 'switchover', '--leader', from.name, '--force', scope]
      // The clients of the load run in this process, so it must not block.
      await run('patronictl', args, { ...owner, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', HOME: dir } })
    },
    /** The time at which Patroni promoted another node than this since then, as its log has it. */
    async waitForPromotion(old: Node, sinceMs: number): Promise<number> {
      let promotedAt: number | undefined
      await waitUntil(
        'Patroni to promote another node',
        () => {
          const others = nodes.filter((node) => node !== old)
          const promotions = others.flatMap(({ name }) => listPromotions(readLog(name)))
          promotedAt = promotions.filter((ms) => ms >= sinceMs).sort((a, b) => a - b)[0]
          return promotedAt !== undefined
        },
        120_000,
      )
      return promotedAt ?? 0
    },
    close() {
      for (const node of nodes) {
        const pids = listProcesses(node)
        signal(pids, 'SIGKILL')
      }
      etcd.kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
    },
  }
}

async function startNodes() {
  const owner = { uid: readId('-u'), gid: readId('-g') }
  const dir = mkdtempSync(join(dataRoot, 'assay-patroni-'))
  const makeDir = (path: string) => {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chownSync(path, owner.uid, owner.gid)
    return path
  }
  makeDir(dir)
  chownSync(dir, owner.uid, owner.gid)

  /** Starts a program as the user of PostgreSQL, with its output in a file. */
  function start(name: string, command: string, args: string[]): ChildProcess {
    const log = openSync(join(dir, `${name}.log`), 'a')
    const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', HOME: dir, TZ: 'UTC' }
    return spawn(command, args, { ...owner, env, cwd: dir, stdio: ['ignore', log, log] })
  }

  const etcdPort = await findFreePort()
  const etcd = start('etcd', 'etcd', toEtcdOptions(makeDir(join(dir, 'etcd')), etcdPort, await findFreePort()))
  const startPatroni = (name: string) => start(name, 'patroni', [join(dir, `${name}.json`)])
  const nodes: Node[] = []
  for (const name of ['node1', 'node2', 'node3']) {
    const [port, restPort] = [await findFreePort(), await findFreePort()]
    const nodeDir = makeDir(join(dir, name))
    const settings = toSettings({ name, port, restPort, nodeDir, etcdPort })
    writeFileSync(join(dir, `${name}.json`), JSON.stringify(settings), { mode: 0o644 })
    nodes.push({ name, port, restPort, dir: nodeDir, patroni: startPatroni(name) })
  }
  return { dir, owner, etcd, nodes, startPatroni }
}

export type Patroni = Awaited<ReturnType<typeof openPatroni>>

/** All processes of a node: Patroni, the postmaster and its children. */
function listProcesses({ dir: nodeDir, patroni }: Node): number[] {
  const postmaster = Number(readOptional(join(nodeDir, 'data', 'postmaster.pid')).split('\n')[0])
  const own = patroni.exitCode === null && patroni.signalCode === null ? [patroni.pid ?? 0] : []
  if (!(postmaster > 0)) return own
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readParent(name) === postmaster)
    .map(Number)
  return [...own, postmaster, ...children]
}

const signal = (pids: number[], name: NodeJS.Signals) => {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // The process has ended.
    }
  }
}

const listPromotions = (log: string): number[] =>
  [...log.matchAll(/^(\S+ \S+?),(\d{3}) INFO: promoted self to leader/gm)].map(([, second, ms]) =>
    Date.parse(`${second?.replace(' ', 'T')}.${ms}Z`),
  )

const readId = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))

function readOptional(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** The fourth field of stat; the second may contain spaces, but ends with the last bracket. */
const readParent = (pid: string) => Number(readOptional(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[1])

function toEtcdOptions(dir: string, clientPort: number, peerPort: number): string[] {
  const [client, peer] = [`http://127.0.0.1:${clientPort}`, `http://127.0.0.1:${peerPort}`]
  return [
    `--data-dir=${dir}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // With the newer interface, Patroni 3.0.2 keeps the synchronous standby that it had before a freeze.
    '--enable-v2=true',
    // A busy machine must not cost etcd its own leader.
    '--heartbeat-interval=500',
    '--election-timeout=5000',
  ]
}

type Place = { name: string; port: number; restPort: number; nodeDir: string; etcdPort: number }

function toSettings({ name, port, restPort, nodeDir, etcdPort }: Place) {
  const restAddress = `127.0.0.1:${restPort}`
  const address = `127.0.0.1:${port}`
  return {
    scope,
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
    etcd: { hosts: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...times,
        synchronous_mode: true,
        postgresql: {
          use_pg_rewind: true,
          use_slots: true,
          parameters: { max_connections: 100, shared_buffers: '32MB', max_wal_size: '256MB' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: join(nodeDir, 'data'),
      bin_dir: '/usr/lib/postgresql/15/bin',
      pgpass: join(nodeDir, 'pgpass'),
      parameters: { unix_socket_directories: nodeDir },
      pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 md5', 'host replication all 127.0.0.1/32 md5'],
      authentication: {
        superuser: { username: 'postgres', password },
        replication: { username: 'replicator', password },
        rewind: { username: 'postgres', password },
      },
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
    watchdog: { mode: 'off' },
  }
}
