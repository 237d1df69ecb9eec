import { readFileSync, writeFileSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import koffi from 'koffi'
import { collectGarbage } from '../../src/engines/child-process/late-flags.ts'

/** Attempts what a compromised decoder would attempt, through Node and around it, and prints the result of each. */
const [port, writable] = process.argv.slice(2)
const scanner: Record<string, string> = {}
const attempt = async (name: string, work: () => unknown) => {
  try {
    await work()
    scanner[name] = 'done'
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    scanner[name] = code ?? message
  }
}

await attempt('read a file', () => readFileSync('/etc/passwd'))
await attempt('write a file', () => writeFileSync(`${writable}/through-node`, 'x'))
await attempt('start a program', async () => (await import('node:child_process')).execFileSync('true'))
await attempt('start a thread', async () => new (await import('node:worker_threads')).Worker('', { eval: true }))
await attempt('take 4 GB', () => Buffer.alloc(4 * 1024 ** 3))

const libc = koffi.load(null)
const open = libc.func('open', 'int', ['str', 'int', 'int'])
const write = libc.func('write', 'long', ['int', 'str', 'size_t'])
const getuid = libc.func('getuid', 'int', [])
const setuid = libc.func('setuid', 'int', ['int'])
const createAndWrite = 0o1 | 0o100
process.on('SIGXFSZ', () => {})
scanner.user = String(getuid())
scanner.telemetry = String(process.env.ORT_DISABLE_TELEMETRY)
await attempt('collect garbage', collectGarbage)
await attempt('become root', () => {
  if (setuid(0) !== 0) throw new Error('refused')
})
await attempt('write past Node', () => {
  const file = open(`${writable}/past-node`, createAndWrite, 0o600)
  if (file < 0 || write(file, 'x', 1) !== 1) throw new Error('refused')
})
writeSync(1, JSON.stringify(scanner))
// Last, because the kernel kills the process for it.
const socket = connect(Number(port), '127.0.0.1')
socket.once('connect', () => process.exit()).once('error', () => process.exit())
