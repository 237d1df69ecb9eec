import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../../runtime/logger.ts'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { type Frame, readFrames } from './frame-reader.ts'
import type { Job } from './frames.ts'

export type UnpackProcess = {
  readonly pid: number | undefined
  readonly alive: boolean
  /** Its next word; undefined when it died. */
  nextFrame(): Promise<Frame | undefined>
  startJob(job: Job): Promise<void>
  /** Bytes that it asked for. */
  answer(bytes: Buffer): Promise<void>
  /** Ends it on the spot, whatever it does. */
  kill(): void
  ended: Promise<void>
}

const program = realpathSync(fileURLToPath(import.meta.resolve('./child/main.ts')))
const folder = dirname(dirname(program))
/** Tells Node that the source is made of modules; without it every file is read twice. */
const manifest = join(folder, '..', '..', '..', 'package.json')
const library = realpathSync(dirname(fileURLToPath(import.meta.resolve('7z-wasm'))))

/** Owners of nothing, first. */
const unpackUsers = ['nobody', 'node', 'daemon']

/** Off the heap there are a container's window of 16 MB and the memory of WebAssembly, which has a limit of its own. */
const maxScriptHeapMegabytes = 128

/**
 * Decided once: on the rights of each process, which are to read its own source and nothing else; and on an ordinary
 * user, should we be root.
 */
export function makeProcessStarter({ log }: { log: Logger }) {
  const node = realpathSync(process.execPath)
  const unprivileged = chooseUnprivileged('unpacker', unpackUsers, [dirname(node), folder, library])
  const args = [
    '--permission',
    ...[folder, library].map((path) => `--allow-fs-read=${path}/*`),
    `--allow-fs-read=${manifest}`,
    `--max-old-space-size=${maxScriptHeapMegabytes}`,
    '--expose-gc',
    '--disable-warning=ExperimentalWarning',
    program,
  ]
  return (): UnpackProcess => {
    const { command, args: wrapped } = wrapGuarded(unprivileged, node, args)
    const child = spawn(command, wrapped, {
      cwd: '/',
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    })
    let alive = true
    const ended = new Promise<void>((resolve) => {
      const end = () => {
        alive = false
        resolve()
      }
      child.once('exit', end)
      child.once('error', (error) => {
        log.error({ err: error }, 'the unpacking process cannot be started')
        end()
      })
    })
    watchErrors(child.stderr, log)
    const jobs = child.stdio[3] as Writable
    const members = child.stdio[4] as Readable
    // A broken pipe is a process that died, which its end tells.
    for (const stream of [jobs, members]) stream.on('error', () => {})
    const frames = readFrames(members)
    const kill = () => void child.kill('SIGKILL')

    return {
      pid: child.pid,
      get alive() {
        return alive
      },
      nextFrame: frames.next,
      startJob: (job) => write(jobs, toJobBytes(job)),
      answer: (bytes) => write(jobs, bytes),
      kill,
      ended,
    }
  }
}

/** Resolves when there is room for more, or when it makes no difference any more. */
function write(stream: Writable, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) return resolve()
    stream.write(bytes, () => resolve())
  })
}

function toJobBytes(job: Job): Buffer {
  const text = Buffer.from(JSON.stringify(job))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length, 0)
  return Buffer.concat([length, text])
}

/** What Node says when it runs out of memory or breaks; a bounded beginning of it. */
function watchErrors(stderr: Readable | null, log: Logger) {
  let told = 0
  stderr?.on('data', (chunk: Buffer) => {
    if (told < 4096) log.warn({ said: chunk.toString('utf8', 0, 2048) }, 'the unpacking process complained')
    told += chunk.length
  })
  stderr?.on('error', () => {})
}
