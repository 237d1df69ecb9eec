import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from './free-port.ts'
import { waitUntil } from './wait-until.ts'

export type RunningProxy = { url: string; close(): Promise<void> }
type Target = { dir: string; port: number; service: URL }

const shippedConfig = new URL('../../packaging/haproxy.cfg', import.meta.url)

/** For each proxy, the configuration and the command that runs it in the foreground. */
const proxies = {
  /** Nothing but what a first configuration has: its defaults speak HTTP/1.0 to the service. */
  nginx: {
    command: (file: string) => ['nginx', '-c', file],
    toConfig: ({ dir, port, service }: Target) => `
      daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/log;
      events {}
      http {
        access_log off; client_max_body_size 300m;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir};`).join(' ')}
        server { listen 127.0.0.1:${port}; location / { proxy_pass ${service.origin}; } }
      }`,
  },
  /** The shipped file, with the addresses of this machine. */
  haproxy: {
    command: (file: string) => ['haproxy', '-db', '-f', file],
    toConfig: ({ port, service }: Target) =>
      readFileSync(shippedConfig, 'utf8')
        .replace('bind :8080', `bind 127.0.0.1:${port}`)
        .replace(' api-1:8080', ` ${service.host}`)
        .replace(/^.* api-2:8080$/m, '')
        .replace(' resolvers docker', '')
        .replace(/^resolvers docker[\s\S]*/m, ''),
  },
}

/** Starts a proxy in front of a service. */
export async function openProxy(name: keyof typeof proxies, serviceUrl: string): Promise<RunningProxy> {
  const dir = mkdtempSync(join(tmpdir(), `assay-${name}-`))
  const port = await findFreePort()
  const file = join(dir, 'config')
  const { command, toConfig } = proxies[name]
  writeFileSync(file, toConfig({ dir, port, service: new URL(serviceUrl) }))
  const [program = '', ...args] = command(file)
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  try {
    await waitUntil(`${name} to pass requests on`, async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${log}`)
      return (await isListening(port)) && (await fetch(`http://127.0.0.1:${port}/livez`)).status === 200
    })
  } catch (error) {
    child.kill('SIGKILL')
    await exited
    rmSync(dir, { recursive: true })
    throw error
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      child.kill('SIGTERM')
      await exited
      rmSync(dir, { recursive: true })
    },
  }
}

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
