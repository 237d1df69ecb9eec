import { contentName } from '../unpack-job.ts'
import { openMember, type Pipe } from './members.ts'
import type { Source } from './reader.ts'

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
type Member = ReturnType<typeof openMember> & { written: number }

const folder = '/members'
const noSuchFile = 44
const createFlag = 64
const regularFile = 0o100_644

/**
 * Gives 7-Zip one file to read, the container, and one folder in which it may create everything and nothing is kept:
 * the bytes written there go to the service. Since nothing stays, names can neither clash nor lead out of the folder,
 * and a million of them take no memory.
 */
export function mountStreams(fs: EmscriptenFs, source: Source, pipe: Pipe) {
  const container = `/${contentName}`
  const members = makeMembers(fs, pipe)
  const original = { ...fs }
  const isInside = (path: string) => path.startsWith(`${folder}/`) || path === folder

  fs.open = (path, flags, mode) => {
    if (path === container) return openStream(fs, path, () => source.bytes, { read: readSource(source) })
    if (!isInside(path)) return original.open(path, flags, mode)
    if ((flags & createFlag) === 0) throw new fs.ErrnoError(noSuchFile)
    return members.open(path)
  }
  const stat = (path: string, statOriginal: (path: string) => object) => {
    if (path === container) return newAttributes(source.bytes)
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

/** The members that 7-Zip writes, each sent to the service as it is written. */
function makeMembers(fs: EmscriptenFs, pipe: Pipe) {
  const openMembers = new Set<Member>()
  let rewritten = false
  let count = 0
  let givenBytes = 0

  function write(member: Member, bytes: Uint8Array, position: number) {
    if (position < member.written) rewritten = true
    // The gap in a sparse file is filled with zeros. The service stops the job when the gaps exceed its budget.
    while (position > member.written) send(member, zeros.subarray(0, position - member.written))
    send(member, bytes)
  }

  function send(member: Member, bytes: Uint8Array) {
    member.write(bytes)
    member.written += bytes.length
    givenBytes += bytes.length
  }

  function close(member: Member) {
    if (openMembers.delete(member)) member.end()
  }

  return {
    open(path: string): Stream {
      const member: Member = { ...openMember(pipe, path.slice(folder.length + 1)), written: 0 }
      openMembers.add(member)
      count++
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
    get: () => ({ members: count, givenBytes, rewritten }),
  }
}

/** Reads no further than the end of a piece; 7-Zip asks again for more. */
const readSource =
  (source: Source) =>
  (_: Stream, heap: Int8Array, offset: number, length: number, position: number): number => {
    if (position >= source.bytes || length === 0) return 0
    const { value: piece } = source.pieces(position, position + length).next()
    if (piece === undefined) return 0
    new Uint8Array(heap.buffer, heap.byteOffset, heap.byteLength).set(piece, offset)
    return piece.length
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
