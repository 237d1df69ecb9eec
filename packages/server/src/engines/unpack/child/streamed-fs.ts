import type { ChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'

export type Pipe = Pick<ChildPipe<Job, JobAnswer>, 'send' | 'fetch'>

/** The part of Emscripten's file system that 7-Zip calls. */
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
const createFlag = 64
const regularFile = 0o100_644

/**
 * Gives 7-Zip one file to read, the container, and one folder in which it may create everything and nothing is kept:
 * the bytes written there go to the service. Since nothing stays, names can neither clash nor lead out of the folder,
 * and a million of them take no memory.
 */
export function mountStreams(fs: EmscriptenFs, { containerBytes, name }: Job, pipe: Pipe) {
  const container = `/${name}`
  const file = makeContainerFile(containerBytes, pipe)
  const members = makeMembers(fs, pipe)
  const original = { ...fs }
  const isInside = (path: string) => path.startsWith(`${folder}/`) || path === folder

  fs.open = (path, flags, mode) => {
    if (path === container) return openStream(fs, path, () => file.bytes, { read: file.read })
    if (!isInside(path)) return original.open(path, flags, mode)
    if ((flags & createFlag) === 0) throw new fs.ErrnoError(noSuchFile)
    return members.open(path)
  }
  const stat = (path: string, statOriginal: (path: string) => object) => {
    if (path === container) return newAttributes(file.bytes)
    if (isInside(path)) throw new fs.ErrnoError(noSuchFile)
    return statOriginal(path)
  }
  fs.stat = (path) => stat(path, original.stat)
  fs.lstat = (path) => stat(path, original.lstat)
  fs.mkdir = (path, mode) => (isInside(path) ? undefined : original.mkdir(path, mode))
  fs.ftruncate = (fd, bytes) => {
    const member = fs.streams[fd]?.member
    if (member === undefined) return original.ftruncate(fd, bytes)
    members.truncate(member, bytes)
  }
  for (const verb of ['chmod', 'utime', 'chown', 'lchown', 'unlink', 'rmdir', 'symlink', 'rename'] as const)
    fs[verb] = () => undefined

  return {
    container,
    folder,
    /** Closes the members that 7-Zip left open when it crashed. */
    finish: members.closeAll,
    get: members.get,
  }
}

const zeros = Buffer.alloc(65_536)
const pieceBytes = 2 ** 20
const maxPathBytes = 4096

/** The members that 7-Zip writes, each sent to the service as it is written. */
function makeMembers(fs: EmscriptenFs, pipe: Pipe) {
  const openMembers = new Set<Member>()
  const text = new TextEncoder()
  let rewritten = false
  let count = 0

  function write(member: Member, bytes: Uint8Array, position: number) {
    if (position < member.written) rewritten = true
    // The gap in a sparse file is filled with zeros. The service stops the job when the gaps exceed its budget.
    while (position > member.written) send(member, zeros.subarray(0, position - member.written))
    send(member, bytes)
  }

  function send(member: Member, bytes: Uint8Array) {
    for (let at = 0; at < bytes.length; at += pieceBytes) pipe.send('data', bytes.subarray(at, at + pieceBytes))
    member.written += bytes.length
  }

  function close(member: Member) {
    if (openMembers.delete(member)) pipe.send('end', zeros.subarray(0, 0))
  }

  return {
    open(path: string): Stream {
      const member: Member = { written: 0 }
      openMembers.add(member)
      count++
      pipe.send('open', text.encode(path.slice(folder.length + 1)).subarray(0, maxPathBytes))
      const operations = {
        write(_: Stream, heap: Int8Array, offset: number, length: number, position: number) {
          write(member, new Uint8Array(heap.buffer, heap.byteOffset + offset, length), position)
          return length
        },
        close: () => close(member),
      }
      return openStream(fs, path, () => member.written, operations, member)
    },
    truncate(member: Member, bytes: number) {
      if (bytes < member.written) rewritten = true
    },
    closeAll: () => openMembers.forEach(close),
    get: () => ({ members: count, rewritten }),
  }
}

const blockBytes = 2 ** 20
const maxBlocks = 16

/**
 * The container as a file whose bytes are fetched from the service where 7-Zip reads: never more than 16 MB of it are
 * here. Most containers are smaller than one block and arrive in one piece.
 */
function makeContainerFile(bytes: number, pipe: Pipe) {
  /** Fetched blocks in order of use, the longest unused first. */
  const blocks = new Map<number, Buffer>()

  function getBlock(index: number): Buffer {
    let block = blocks.get(index)
    if (block === undefined) {
      block = pipe.fetch(index * blockBytes, Math.min(blockBytes, bytes - index * blockBytes))
      const [oldest] = blocks.keys()
      if (blocks.size >= maxBlocks && oldest !== undefined) blocks.delete(oldest)
    } else {
      blocks.delete(index)
    }
    blocks.set(index, block)
    return block
  }

  return {
    bytes,
    /** Reads no further than the end of a block; 7-Zip asks again for more. */
    read(_: Stream, heap: Int8Array, offset: number, length: number, position: number): number {
      if (position >= bytes || length === 0) return 0
      const block = getBlock(Math.floor(position / blockBytes))
      const at = position % blockBytes
      const count = Math.min(length, block.length - at)
      new Uint8Array(heap.buffer, heap.byteOffset, heap.byteLength).set(block.subarray(at, at + count), offset)
      return count
    },
  }
}

function openStream(fs: EmscriptenFs, path: string, bytes: () => number, operations: object, member?: Member): Stream {
  const node = new fs.FSNode(null, 'stream', regularFile, 0)
  node.node_ops = { getattr: () => newAttributes(bytes()), setattr: () => {} }
  node.stream_ops = {
    llseek: (stream: Stream, offset: number, whence: number) =>
      whence === 0 ? offset : whence === 1 ? stream.position + offset : bytes() + offset,
    ...operations,
  }
  const flags = member === undefined ? 0 : 1
  return fs.createStream({ node, path, flags, seekable: true, position: 0, stream_ops: node.stream_ops, member })
}

function newAttributes(size: number) {
  const time = new Date(0)
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
    atime: time,
    mtime: time,
    ctime: time,
  }
}
