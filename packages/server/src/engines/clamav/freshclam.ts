import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { hideCredentials } from '../../runtime/hide-credentials.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createServer } from '../../runtime/node-http.ts'
import { type Unprivileged, wrapGuarded } from '../../runtime/process.ts'
import { toJailed } from '../jail/jail.ts'
import { isEscape, type OnEscape, policies } from '../jail/policy.ts'

const runTimeoutMs = 30 * 60_000
/** Keeps the first update from slowing down the start of the service. */
const firstDelayMs = 5000

/** `message` holds the last errors and warnings of freshclam. */
export type UpdateResult = { at: Date; ok: boolean; message: string }

type Run = Pick<UpdateResult, 'ok' | 'message'>

type LaunchDeps = {
  binary: string
  officialDir: string
  user: Unprivileged
}

type UpdaterDeps = LaunchDeps & {
  mirror: string
  /** Addresses of further signature files. */
  urls: string[]
  everyHours: number
  /** Builds the command to spawn; by default freshclam in its jail. */
  toLaunch?: typeof toFreshclamLaunch
  /** Called after each run. A run that failed in part may have changed files too. */
  onRun(result: UpdateResult): void
  log: Logger
  onEscape?: OnEscape | undefined
}

/** Downloads new signatures from ClamAV's mirrors, or those that are set, at regular times. */
export function openUpdater(deps: UpdaterDeps) {
  const { officialDir, user, log, toLaunch = toFreshclamLaunch } = deps
  const configFile = toConfigFile(officialDir)
  let isClosed = false
  let last: UpdateResult | undefined
  let child: ChildProcess | undefined
  let isRunning = false
  let waiting: ((result: UpdateResult) => void)[] = []
  const first = setTimeout(run, firstDelayMs)
  const every = setInterval(run, deps.everyHours * 3_600_000)

  return {
    findLast: () => last,
    /** Starts a run, or joins the one under way, and returns its result. */
    runNow(): Promise<UpdateResult> {
      const result = new Promise<UpdateResult>((resolve) => waiting.push(resolve))
      run()
      return result
    },
    close() {
      isClosed = true
      clearTimeout(first)
      clearInterval(every)
      child?.kill('SIGTERM')
    },
  }

  function run() {
    if (isRunning) return
    isRunning = true
    update().then(
      ({ ok, message }) => end(ok, message),
      (error: Error) => end(false, error.message),
    )
  }

  async function update(): Promise<Run> {
    const proxy = await openMirrorProxy([deps.mirror, ...deps.urls])
    try {
      prepare(proxy.port)
      const result = await start(proxy.port, [])
      // After a failure of the mirror, freshclam does not download from the operator's addresses.
      if (!result.ok && deps.urls.length > 0) await start(proxy.port, ['--update-db=custom'])
      return result
    } finally {
      proxy.close()
    }
  }

  function prepare(proxyPort: number) {
    mkdirSync(officialDir, { recursive: true })
    if (user.owner !== undefined) chownSync(officialDir, user.owner.uid, user.owner.gid)
    writeFileSync(configFile, toConfig(deps, proxyPort), { mode: 0o644 })
  }

  async function start(proxyPort: number, extraArgs: string[]): Promise<Run> {
    if (isClosed) return { ok: false, message: 'The service is stopping.' }
    // The jail has no name servers. The version of a database is read from its first bytes instead.
    const usualArgs = [`--config-file=${configFile}`, '--stdout', '--no-warnings', '--no-dns']
    const { command, args } = toLaunch(deps, proxyPort, [...usualArgs, ...extraArgs])
    child = spawn(command, args, {
      cwd: '/',
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: runTimeoutMs,
    })
    return waitForEnd(child, deps.onEscape)
  }

  function end(ok: boolean, said: string) {
    isRunning = false
    child = undefined
    if (isClosed) return
    // freshclam names the URLs that it cannot download, and the console shows the message.
    const message = hideCredentials(said)
    last = { at: new Date(), ok, message }
    if (ok) log.info('signatures are up to date')
    else log.warn({ message }, 'signatures could not be updated; the current ones stay in use')
    deps.onRun(last)
    for (const resolve of waiting) resolve(last)
    waiting = []
  }
}

export type Updater = ReturnType<typeof openUpdater>

/** Waits until freshclam has ended; the result has its last errors. */
function waitForEnd(child: ChildProcess, onEscape: OnEscape | undefined): Promise<Run> {
  let message = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text: Buffer) => {
      message = (message + text.toString()).slice(-4000)
    })
  }
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ ok: false, message: error.message }))
    child.once('close', (code, signal) => {
      if (isEscape(signal)) onEscape?.('freshclam')
      const words = isEscape(signal) ? 'freshclam made a forbidden system call' : toLastErrors(message)
      resolve({ ok: code === 0, message: words })
    })
  })
}

/** The command that runs freshclam in its jail. */
export function toFreshclamLaunch({ binary, officialDir, user }: LaunchDeps, proxyPort: number, args: string[]) {
  const policy = policies.freshclam({
    binary: realpathSync(binary),
    reads: [toConfigFile(officialDir)],
    writes: [officialDir],
    ports: [proxyPort],
  })
  const jailed = toJailed(policy, args, { hasSocket: false, keepsCapability: user.hasCapability === true })
  return wrapGuarded(user, jailed.command, jailed.args)
}

/** The user of freshclam owns its directory, and could put a link there in the place of a file that root writes. */
const toConfigFile = (officialDir: string) => join(dirname(officialDir), 'freshclam.conf')

function toConfig({ officialDir, mirror, urls }: UpdaterDeps, proxyPort: number): string {
  const settings = [
    ['DatabaseDirectory', officialDir],
    ['DatabaseMirror', mirror],
    ...urls.map((url) => ['DatabaseCustomURL', url]),
    ['HTTPProxyServer', '127.0.0.1'],
    ['HTTPProxyPort', proxyPort],
    ['MaxAttempts', 2],
    ['ConnectTimeout', 20],
    ['ReceiveTimeout', 120],
    ['TestDatabases', 'yes'],
    ['CompressLocalDatabase', 'no'],
    ['LogTime', 'no'],
  ]
  return `${settings.map(([name, value]) => `${name} ${value}`).join('\n')}\n`
}

/** In its jail freshclam can neither start a process to test a database in nor use DNS: it warns, and does without. */
const toLastErrors = (message: string) =>
  message
    .split('\n')
    .filter(
      (line) => /error|warning|can't|failed/i.test(line) && !/fork\(\) to test|DNS Update Info disabled/.test(line),
    )
    .slice(-2)
    .join(' ')

/**
 * Opens an HTTP proxy on the loopback that connects to the hosts of these addresses and to no other. The jail lets
 * freshclam connect to the port of the proxy only, at any host: Landlock knows no addresses. An attacker who takes over
 * freshclam therefore reaches the mirrors, and hosts that listen at the same port, which differs in every run.
 * freshclam asks for a tunnel for every address, with and without TLS.
 */
export async function openMirrorProxy(addresses: string[]): Promise<{ port: number; close(): void }> {
  const allowed = new Set(addresses.flatMap(listTargets))
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const server = createServer((_, response) => response.writeHead(403).end())
  server.on('connection', keep)
  server.on('connect', (asked: IncomingMessage, socket: Socket, head: Buffer) => {
    const target = toTarget(URL.parse(`https://${asked.url}`))
    if (target === undefined || !allowed.has(`${target.host} ${target.port}`)) {
      return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    }
    const upstream = connect(target)
    keep(upstream)
    upstream.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      void Promise.allSettled([pipeline(socket, upstream), pipeline(upstream, socket)])
    })
    upstream.once('error', () => socket.destroy())
    socket.once('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * The hosts and ports that an address leads to. freshclam asks a mirror without a protocol by TLS, older versions ask
 * without.
 */
function listTargets(address: string): string[] {
  const urls = address.includes('://') ? [address] : [`https://${address}`, `http://${address}`]
  return urls.flatMap((url) => {
    const target = toTarget(URL.parse(url))
    return target === undefined ? [] : `${target.host} ${target.port}`
  })
}

const defaultPorts: Record<string, number> = { 'https:': 443, 'http:': 80 }

function toTarget(url: URL | null): { host: string; port: number } | undefined {
  const defaultPort = defaultPorts[url?.protocol ?? '']
  if (url === null || defaultPort === undefined) return undefined
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? defaultPort : Number(url.port) }
}
