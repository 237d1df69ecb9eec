/**
 * Puts itself into a jail and becomes the parser: jail.ts starts this program with a description of the jail and the
 * command line of the parser. Landlock restricts the calling thread, and execve ends all others, so the parser is
 * inside with every thread. This file is plain JavaScript without imports: removing types would triple its time.
 */
const jail = JSON.parse(process.argv[2])
const native = { exports: {} }
process.dlopen(native, jail.koffi)
const { load, address, errno } = native.exports
const libc = load(null)
const prctl = libc.func('prctl', 'int', ['int', 'uint64_t', 'void *', 'uint64_t', 'uint64_t'])
const setProcessGroup = libc.func('setpgid', 'int', ['int', 'int'])
const fcntl = libc.func('fcntl', 'int', ['int', 'int', 'int'])
const setrlimit = libc.func('setrlimit', 'int', ['int', 'void *'])
const getrlimit = libc.func('getrlimit', 'int', ['int', 'void *'])
// System calls that older versions of libc do not wrap. Their numbers are the same on every architecture.
const systemCall = libc.func('syscall', 'int64_t', ['int64_t', 'int64_t', 'int64_t', 'int64_t', 'int64_t'])
const call = { closeRange: 436, createRuleset: 444, addRule: 445, restrictSelf: 446 }

const option = { deathSignal: 1, seccomp: 22, noNewPrivileges: 38, ambientCapabilities: 47 }
const seccompFilter = 2
const killSignal = 9

enter()

function enter() {
  // Ctrl-C at a terminal signals the group of the service. In a group of its own, the parser works until the service,
  // which lets running requests finish, ends it.
  setProcessGroup(0, 0)
  // A parser in an endless loop would not notice that the service is gone.
  check('prctl', prctl(option.deathSignal, killSignal, null, 0, 0))
  // A service that was killed before that call is not reported; its parser would live on and keep the socket of clamd.
  if (process.ppid !== jail.parent) process.exit(1)
  check('prctl', prctl(option.noNewPrivileges, 1, null, 0, 0))
  limitThreads(jail.freeThreads)
  // A limit that the operator has set lower cannot be raised.
  for (const [resource, limit] of jail.limits) setLimit(resource, Math.min(limit, Number(findMost(resource))))
  // Marks all descriptors as close-on-exec but the standard ones and those that the parser is to get.
  systemCall(call.closeRange, 3, 0xffffffff, 4, 0)
  for (const descriptor of jail.descriptors) fcntl(descriptor, 2, 0)
  if (jail.landlock >= jail.minLandlock) restrictFiles(jail.landlock)
  if (jail.hasFilter) restrictCalls()
  // Ends the ambient capabilities, the only ones that an ordinary user would take along.
  if (!jail.keepsCapability) prctl(option.ambientCapabilities, 4, null, 0, 0)
  if (jail.announcesStart) process.getBuiltinModule('node:fs').writeSync(3, '\n')
  process.execve(jail.command[0], jail.command, process.env)
}

/** `abi` is the version of Landlock that the kernel has. */
function restrictFiles(abi) {
  const { openSync, fstatSync } = process.getBuiltinModule('node:fs')
  const [files, network, scopes] = jail.handled.map((byAbi) => byAbi.filter(([from]) => from <= abi))
  const attributes = Buffer.alloc(24)
  const toMask = (rights) => rights.reduce((mask, [, bits]) => mask | BigInt(bits), 0n)
  attributes.writeBigUInt64LE(toMask(files), 0)
  attributes.writeBigUInt64LE(toMask(network), 8)
  attributes.writeBigUInt64LE(toMask(scopes), 16)
  const size = abi < 4 ? 8 : abi < 6 ? 16 : 24
  const ruleset = Number(check('landlock', systemCall(call.createRuleset, address(attributes), size, 0, 0)))

  for (const [path, rights] of jail.paths) {
    let file
    try {
      file = openSync(path, 0o10000000)
    } catch {
      // The parser finds no more here than this program does.
      continue
    }
    const possible = fstatSync(file).isDirectory() ? rights : rights & jail.fileRights
    const rule = Buffer.alloc(16)
    rule.writeBigUInt64LE(BigInt(possible) & toMask(files), 0)
    rule.writeInt32LE(file, 8)
    check(`landlock ${path}`, systemCall(call.addRule, ruleset, 1, address(rule), 0))
  }
  for (const port of abi < 4 ? [] : jail.ports) {
    const rule = Buffer.alloc(16)
    rule.writeBigUInt64LE(2n, 0)
    rule.writeBigUInt64LE(BigInt(port), 8)
    check(`landlock port ${port}`, systemCall(call.addRule, ruleset, 2, address(rule), 0))
  }
  check('landlock', systemCall(call.restrictSelf, ruleset, 0, 0, 0))
}

function restrictCalls() {
  const instructions = Buffer.from(jail.filter, 'hex')
  // execve keeps the process id.
  for (const offset of jail.pidOffsets) instructions.writeUInt32LE(process.pid, offset)
  const program = Buffer.alloc(16)
  program.writeUInt16LE(instructions.length / 8, 0)
  program.writeBigUInt64LE(BigInt(address(instructions)), 8)
  check('seccomp', prctl(option.seccomp, seccompFilter, program, 0, 0))
}

function setLimit(resource, limit, most = limit) {
  const both = Buffer.alloc(16)
  both.writeBigUInt64LE(BigInt(limit), 0)
  both.writeBigUInt64LE(BigInt(most), 8)
  check(`setrlimit ${resource}`, setrlimit(resource, both))
}

/** The hard limit. */
function findMost(resource) {
  const limits = Buffer.alloc(16)
  check('getrlimit', getrlimit(resource, limits))
  return limits.readBigUInt64LE(8)
}

/**
 * The kernel counts the threads of a user over all programs, also over those of other containers, which are not visible
 * here. So this tries by itself which limit leaves room for at least `count` further threads, and takes that limit.
 */
function limitThreads(count) {
  const threads = 6
  const most = findMost(threads)
  const startThread = libc.func('pthread_create', 'int', ['void *', 'void *', 'void *', 'void *'])
  // A thread that does nothing, until execve ends it.
  const wait = libc.func('dlsym', 'void *', ['void *', 'str'])(null, 'pause')
  for (let limit = 2 * count; limit < most; limit *= 2) {
    setLimit(threads, limit - count, most)
    if (startThread(Buffer.alloc(8), null, wait, null) === 0) return setLimit(threads, limit)
  }
  setLimit(threads, most)
}

function check(name, result) {
  if (result >= 0) return result
  throw new Error(`The jail cannot be entered: ${name} failed with error ${errno()}`)
}
