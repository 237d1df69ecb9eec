import { maxPathBytes } from '../frames.ts'
import type { ContainerFile } from './container-file.ts'
import type { ServicePipe } from './service-pipe.ts'

/** Of Emscripten's file system, what 7-Zip's calls end in. */
export type EmscriptenFs = {
  ErrnoError: new (errno: number) => Error
  FSNode: new (parent: null, name: string, mode: number, rdev: number) => FsNode
  createStream(stream: object): Stream
  streams: (Stream | null)[]
  open(path: string, flags: number, mode?: number): Stream
  stat(path: string): object
  lstat(path: string): object
  ftruncate(fd: number, bytes: number): void
  mkdir(path: string, mode?: number): unknown
} & Record<'chmod' | 'utime' | 'chown' | 'lchown' | 'unlink' | 'rmdir', (path: string) => unknown> &
  Record<'symlink' | 'rename', (from: string, to: string) => unknown>

type FsNode = { node_ops: object; stream_ops: object }
type Stream = { fd: number; position: number; member?: Member; node: FsNode }
type Member = { written: number }

const folder = '/members'
const noSuchFile = 44
const creates = 64
const zeros = Buffer.alloc(65_536)
const regularFile = 0o100_644

/**
 * One file to read, which is the container, and one folder in which everything may be created and nothing is kept: what
 * is written there goes to the service. As nothing stays, names can neither clash nor lead out, and a million of them
 * take no memory.
 */
export function mountStreams(fs: EmscriptenFs, file: ContainerFile, name: string, service: ServicePipe) {
  const container = `/${name}`
  const open = new Set<Member>()
  const path = new TextEncoder()
  let rewritten = false
  let count = 0

  function openMember(full: string): Stream {
    const member: Member = { written: 0 }
    const node = newNode(fs, () => member.written, {
      llseek: (stream: Stream, offset: number, whence: number) =>
        whence === 0 ? offset : whence === 1 ? stream.position + offset : member.written + offset,
      write: (_: Stream, heap: Int8Array, offset: number, length: number, position: number) => {
        writeMember(member, new Uint8Array(heap.buffer, heap.byteOffset + offset, length), position)
        return length
      },
      close: () => closeMember(member),
    })
    open.add(member)
    count++
    service.send('open', path.encode(full.slice(folder.length + 1)).subarray(0, maxPathBytes))
    return fs.createStream({
      node,
      path: full,
      flags: 1,
      seekable: true,
      position: 0,
      stream_ops: node.stream_ops,
      member,
    })
  }

  function writeMember(member: Member, bytes: Uint8Array, position: number) {
    if (position < member.written) rewritten = true
    // Left out by a sparse file. The service stops us when that is too much.
    while (position > member.written) sendData(member, zeros.subarray(0, position - member.written))
    sendData(member, bytes)
  }

  function sendData(member: Member, bytes: Uint8Array) {
    for (let at = 0; at < bytes.length; at += pieceBytes) service.send('data', bytes.subarray(at, at + pieceBytes))
    member.written += bytes.length
  }

  function closeMember(member: Member) {
    if (open.delete(member)) service.send('close', zeros.subarray(0, 0))
  }

  function openContainer(): Stream {
    const node = newNode(fs, () => file.bytes, {
      llseek: (stream: Stream, offset: number, whence: number) =>
        whence === 0 ? offset : whence === 1 ? stream.position + offset : file.bytes + offset,
      read: (_: Stream, heap: Int8Array, offset: number, length: number, position: number) =>
        file.readInto(new Uint8Array(heap.buffer, heap.byteOffset, heap.byteLength), offset, length, position),
    })
    return fs.createStream({
      node,
      path: container,
      flags: 0,
      seekable: true,
      position: 0,
      stream_ops: node.stream_ops,
    })
  }

  const before = { ...fs }
  const isInside = (one: string) => one.startsWith(`${folder}/`) || one === folder
  fs.open = (one, flags, mode) => {
    if (one === container) return openContainer()
    if (!isInside(one)) return before.open(one, flags, mode)
    if ((flags & creates) === 0) throw new fs.ErrnoError(noSuchFile)
    return openMember(one)
  }
  const stat = (one: string, usual: (path: string) => object) => {
    if (one === container) return newAttributes(file.bytes)
    if (isInside(one)) throw new fs.ErrnoError(noSuchFile)
    return usual(one)
  }
  fs.stat = (one) => stat(one, before.stat)
  fs.lstat = (one) => stat(one, before.lstat)
  fs.mkdir = (one, mode) => (isInside(one) ? undefined : before.mkdir(one, mode))
  fs.ftruncate = (fd, bytes) => {
    const member = fs.streams[fd]?.member
    if (member === undefined) return before.ftruncate(fd, bytes)
    if (bytes < member.written) rewritten = true
  }
  for (const verb of ['chmod', 'utime', 'chown', 'lchown', 'unlink', 'rmdir', 'symlink', 'rename'] as const)
    fs[verb] = () => undefined

  return {
    container,
    folder,
    /** What was left open when the program broke off. */
    finish: () => open.forEach(closeMember),
    tell: () => ({ members: count, rewritten }),
  }
}

const pieceBytes = 2 ** 20

function newNode(fs: EmscriptenFs, bytes: () => number, streamOps: object): FsNode {
  const node = new fs.FSNode(null, 'stream', regularFile, 0)
  node.node_ops = { getattr: () => newAttributes(bytes()), setattr: () => {} }
  node.stream_ops = streamOps
  return node
}

function newAttributes(size: number) {
  const time = new Date(0)
  const times = { atime: time, mtime: time, ctime: time }
  return {
    dev: 1,
    ino: 1,
    mode: regularFile,
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    size,
    blksize: 4096,
    blocks: 1,
    ...times,
  }
}
