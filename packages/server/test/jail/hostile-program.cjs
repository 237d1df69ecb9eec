/**
 * Runs in the place of a parser and attempts what an attacker would who has taken it over, by native calls that Node's
 * permission model does not see. Prints one JSON object: the name of each attempt and `done` or the error.
 */
const { koffi, key, elsewhere, service, port, socket, abstract, numbers, fatal, startsThreads } = JSON.parse(
  process.argv[2],
)
const native = { exports: {} }
process.dlopen(native, koffi)
const { load, address, errno } = native.exports
const libc = load(null)
const call = libc.func('syscall', 'int64_t', Array(7).fill('int64_t'))
const errorNames = { 1: 'EPERM', 2: 'ENOENT', 3: 'ESRCH', 11: 'EAGAIN', 12: 'ENOMEM', 13: 'EACCES', 14: 'EFAULT' }
Object.assign(errorNames, {
  22: 'EINVAL',
  24: 'EMFILE',
  38: 'ENOSYS',
  129: 'killed',
  101: 'ENETUNREACH',
  111: 'ECONNREFUSED',
})
const toText = (text) => address(texts[texts.push(Buffer.from(`${text}\0`)) - 1])
const texts = []
const results = {}

/** Calls the kernel by number. Results of -4096 and above are errors. */
function attempt(name, number, ...args) {
  if (number === undefined) return -1
  const result = Number(call(number, ...args, ...Array(6 - args.length).fill(0)))
  results[name] = result >= 0 ? 'done' : (errorNames[errno()] ?? `error ${errno()}`)
  return result
}

const files = process.getBuiltinModule('node:fs')
if (fatal !== undefined) {
  // The filter kills the process at once, so nothing is reported.
  const result = Number(call(...fatal, ...Array(7 - fatal.length).fill(0)))
  files.writeSync(1, JSON.stringify({ survived: result }))
  process.exit()
}

const here = -100
const flags = { write: 1, create: 0o100, truncate: 0o1000, directory: 0o200000, path: 0o10000000 }
const open = (name, path, flag = 0) => attempt(name, numbers.openat, here, toText(path), flag, 0o600)
/** The files among the descriptors; Node has pipes and others of its own. */
results.files = files
  .readdirSync('/proc/self/fd')
  .map(findTarget)
  .filter((target) => target.startsWith('/') && !target.startsWith('/proc') && target !== '/dev/null')
results.socket = findTarget(3).startsWith('socket:')
function findTarget(descriptor) {
  try {
    return files.readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}

open('read the master key', key)
open('read another file of the data directory', `${elsewhere}/other-content`)
open('list the data directory', elsewhere, flags.directory)
open('read /root', '/root', flags.directory)
open('list all processes', '/proc', flags.directory)
open('read the environment of the service', `/proc/${service}/environ`)
open('read the memory of the service', `/proc/${service}/mem`)
open('open a descriptor of the service', `/proc/${service}/fd`, flags.directory)
open('create a file elsewhere', `${elsewhere}/created`, flags.write | flags.create)
open('overwrite a file elsewhere', `${elsewhere}/other-content`, flags.write)
open('write to the shared memory of the machine', '/dev/shm/assay-hostile', flags.write | flags.create)
attempt('truncate a file elsewhere', numbers.truncate, toText(`${elsewhere}/other-content`), 0)
open('empty a file elsewhere while opening it', `${elsewhere}/other-content`, flags.truncate)
// Access mode 3 stands for neither reading nor writing, so Landlock asks for no right.
open('empty a file elsewhere by access mode 3', `${elsewhere}/other-content`, flags.truncate | 3)
attempt('remove a file elsewhere', numbers.unlinkat, here, toText(`${elsewhere}/other-content`), 0)
attempt('link to the master key', numbers.linkat, here, toText(key), here, toText(`${elsewhere}/link`), 0)
attempt('change the mode of the master key', numbers.fchmodat, here, toText(key), 0o644)
attempt('watch the data directory', numbers.inotify_add_watch, 0, toText(elsewhere), 2)

/** sockaddr_in of 127.0.0.1, or sockaddr_un. */
function toAddress(target) {
  const bytes = Buffer.alloc(110)
  bytes.writeUInt16LE(typeof target === 'number' ? 2 : 1, 0)
  if (typeof target === 'number') {
    bytes.writeUInt16BE(target, 2)
    bytes.set([127, 0, 0, 1], 4)
  } else bytes.write(target, 2)
  return bytes
}
function dial(name, family, type, target, protocol = 0) {
  const descriptor = attempt(name, numbers.socket, family, type, protocol)
  if (descriptor < 0) return
  const to = toAddress(target)
  attempt(name, numbers.connect, descriptor, address(to), typeof target === 'number' ? 16 : 2 + target.length)
  attempt('close', numbers.close, descriptor)
  delete results.close
}
/** MSG_FASTOPEN connects without a call of connect. */
function connectBySending(name) {
  const descriptor = attempt(name, numbers.socket, 2, 1, 0)
  if (descriptor < 0) return
  attempt(name, numbers.sendto, descriptor, address(Buffer.alloc(1)), 1, 0x20000000, address(toAddress(port)), 16)
  attempt('close', numbers.close, descriptor)
  delete results.close
}
dial('connect to the database by its socket', 1, 1, socket)
dial('send to a datagram socket', 1, 2, socket)
dial('connect to an abstract socket', 1, 1, abstract)
dial('connect by TCP', 2, 1, port)
dial('connect by MPTCP', 2, 1, port, 262)
connectBySending('connect by TCP Fast Open')
dial('send by UDP', 2, 2, port)
attempt('open a raw socket', numbers.socket, 2, 3, 255)
attempt('open a packet socket', numbers.socket, 17, 3, 0)
attempt('open a netlink socket', numbers.socket, 16, 3, 0)

attempt('signal the service', numbers.kill, service, 0)
attempt('signal the process group', numbers.kill, 0, 0)
attempt('signal a thread of the service', numbers.tgkill, service, service, 0)
attempt('queue a signal to the service', numbers.rt_sigqueueinfo, service, 0, 0)
attempt('trace the service', numbers.ptrace, 0x4206, service, 0, 0)
attempt('read the memory of the service by a call', numbers.process_vm_readv, service, 0, 0, 0, 0, 0)
attempt('open a handle of the service', numbers.pidfd_open, service, 0)
attempt('limit the service', numbers.prlimit64, service, 7, 0, address(Buffer.alloc(16)))
attempt('slow down the service', numbers.setpriority, 0, service, 19)
// The kernel signals the owner of a descriptor when it becomes readable: F_SETOWN, F_SETSIG, F_SETOWN_EX, and two ioctls.
attempt('make the service the owner of a descriptor', numbers.fcntl, 1, 8, service)
attempt('choose the signal of a descriptor', numbers.fcntl, 1, 10, 9)
const owner = Buffer.alloc(8)
owner.writeInt32LE(1, 0)
owner.writeInt32LE(service, 4)
attempt('make the service the owner by another command', numbers.fcntl, 1, 15, address(owner))
attempt('make the service the owner by FIOSETOWN', numbers.ioctl, 1, 0x8901, address(owner.subarray(4)))
attempt('make the service the owner by SIOCSPGRP', numbers.ioctl, 1, 0x8902, address(owner.subarray(4)))
attempt('outlive the service', numbers.prctl, 1, 0)
attempt('attach shared memory', numbers.shmget, 0x5432, 4096, 0o1600)

attempt('mount', numbers.mount, toText('none'), toText('/tmp'), toText('tmpfs'), 0, 0)
attempt('create a user namespace', numbers.unshare, 0x10000000)
attempt('change the root', numbers.chroot, toText('/'))
attempt('open by handle', numbers.open_by_handle_at, here, address(Buffer.alloc(64)), 0)
attempt('become root', numbers.setuid, 0)
attempt('set capabilities', numbers.capset, 0, 0)
attempt('load a BPF program', numbers.bpf, 5, 0, 0)
attempt('use keys of the kernel', numbers.keyctl, 0, -3, 1)
attempt('use io_uring', numbers.io_uring_setup, 1, address(Buffer.alloc(128)))
attempt('handle page faults', numbers.userfaultfd, 1)
attempt('measure the machine', numbers.perf_event_open, address(Buffer.alloc(128)), 0, -1, -1, 0)
attempt('create an executable in memory', numbers.memfd_create, toText('x'), 0)

results['fork 10,000 times'] = forkMany()
function forkMany() {
  for (let count = 0; count < 20; count++) {
    const pid = Number(call(numbers.clone, 17, 0, 0, 0, 0, 0))
    if (pid === 0) call(numbers.exit_group, 0, 0, 0, 0, 0, 0)
    if (pid < 0) return errorNames[errno()]
  }
  return 'done'
}
attempt('take 10 GB', numbers.mmap, 0, 10 * 2 ** 30, 3, 0x22, -1, 0)
attempt('take shared memory without a limit', numbers.mmap, 0, 10 * 2 ** 30, 3, 0x21, -1, 0)
// MAP_GROWSDOWN, and MAP_NORESERVE so that it is not the memory of the machine that refuses.
attempt('take 10 GB as a stack', numbers.mmap, 0, 10 * 2 ** 30, 3, 0x4122, -1, 0)
// The stack of the first thread grows up to this limit, beside the limit on data.
attempt('let the stack grow without a limit', numbers.prlimit64, 0, 3, address(Buffer.alloc(16, 0xff)))
if (startsThreads) results['start 10,000 threads'] = startThreads()
/** Threads with small stacks, which wait for a signal. */
function startThreads() {
  const start = libc.func('pthread_create', 'int', ['void *', 'void *', 'void *', 'void *'])
  const wait = libc.func('dlsym', 'void *', ['void *', 'str'])(null, 'pause')
  const attributes = Buffer.alloc(128)
  libc.func('pthread_attr_init', 'int', ['void *'])(attributes)
  libc.func('pthread_attr_setstacksize', 'int', ['void *', 'size_t'])(attributes, 131_072)
  for (let count = 0; count < 10_000; count++) {
    const error = start(Buffer.alloc(8), attributes, wait, null)
    if (error !== 0) return count < 16 ? 'too early' : errorNames[error]
  }
  return 'done'
}
results['open 10,000 files'] = openMany()
function openMany() {
  for (let count = 0; count < 10_000; count++) {
    if (Number(call(numbers.openat, here, toText('/dev/null'), 0, 0, 0, 0)) < 0) return errorNames[errno()]
  }
  return 'done'
}
// Last: if this succeeded, there would be no report.
attempt('start another program', numbers.execve, toText('/bin/true'), address(Buffer.alloc(8)), 0)
files.writeSync(1, JSON.stringify(results))
process.exit()
