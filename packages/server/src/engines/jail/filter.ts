import { type Architecture, architectureIds, findCallNumber } from './system-calls.ts'

/** The system calls that a process may make. Landlock decides on files. */
export type AllowedCalls = {
  /**
   * `none`: the process uses the descriptors that it was given. `listen`: it may create Unix sockets and accept
   * connections, but not connect. `connect`: it may connect by TCP, and has no other sockets.
   */
  sockets: 'none' | 'listen' | 'connect'
  /**
   * Changes of modes, owners and times of files, on which Landlock has no say. No parser may change them. Those that
   * end when they cannot are told that they have.
   */
  modeChanges: 'refused' | 'ignored'
  /** Start of a process. `refused` is for programs that go on without it; any other is killed. */
  newProcesses: 'fatal' | 'refused'
}

/** An instruction of classic BPF; `pid` stands for the id of the process, which its launcher knows. */
export type Instruction = [code: number, jumpTrue: number, jumpFalse: number, value: number | 'pid']

const code = { load: 0x20, and: 0x54, jumpEqual: 0x15, jumpGreaterOrEqual: 0x35, jumpAnyBit: 0x45, return: 0x06 }
const offset = { number: 0, architecture: 4, argument: (index: number) => 16 + 8 * index }
const refuse = (errno: number): Instruction => [code.return, 0, 0, 0x00050000 | errno]
const notPermitted = refuse(1)
const notImplemented = refuse(38)
/** The kernel does nothing, and reports success. */
const ignored = refuse(0)
const allow: Instruction = [code.return, 0, 0, 0x7fff0000]
const killProcess: Instruction = [code.return, 0, 0, 0x80000000]

/** Numbers from here on are those of x32, a second set of calls on x64 that would go around the filter. */
const firstX32Call = 0x40000000
const cloneThread = 0x00010000
/** All CLONE_NEW flags: a new namespace of any kind. */
const cloneNamespaces = 0x7e020000
const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 }
const socketTypes = { mask: 0xf, stream: 1, datagram: 2 }
/** Protocols of a stream: the default and TCP. The port rules of Landlock do not cover others, such as MPTCP. */
const streamProtocols = [0, 6]
/** MSG_FASTOPEN connects while sending, which the port rules of Landlock do not cover on every kernel. */
const sendFastOpen = 0x20000000
/** Requests of ioctl that put input into a terminal: TIOCSTI and TIOCLINUX. */
const terminalInput = [0x5412, 0x541c]
/**
 * The owner of a descriptor gets a signal when the descriptor becomes readable, and may be any process of the user:
 * FIOSETOWN and SIOCSPGRP of ioctl, F_SETOWN, F_SETSIG and F_SETOWN_EX of fcntl.
 */
const ownerRequests = [0x8901, 0x8902]
const ownerCommands = [8, 10, 15]
/** PR_SET_PDEATHSIG, by which the launcher lets the parser end with the service. */
const deathSignal = 1
/** MAP_SHARED and MAP_GROWSDOWN with MAP_ANONYMOUS: memory that the limit on data does not count. */
const mapUncounted = 0x01 | 0x100
const mapAnonymous = 0x20
/**
 * O_TRUNC with an access mode other than O_WRONLY and O_RDWR empties a file that the process may not write to by
 * Landlock before version 3.
 */
const openTruncate = 0o1000
const accessMode = { mask: 0o3, write: 1, readWrite: 2 }

/**
 * Calls that no honest parser makes, however it was built. The kernel kills the process, so that the service learns of
 * the attempt.
 */
const fatal = {
  otherProcesses:
    'ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd pidfd_send_signal ' +
    'migrate_pages',
  // The shared memory of PostgreSQL belongs to these.
  sharedMemory: 'shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink',
  namespaces:
    'mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick ' +
    'mount_setattr statmount listmount unshare setns',
  keys: 'keyctl add_key request_key',
  machine:
    'init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl ' +
    'quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup iopl ' +
    'ioperm modify_ldt',
  kernelSurface: 'bpf perf_event_open userfaultfd fanotify_init fanotify_mark open_by_handle_at',
}

/** Calls by which libraries tune themselves, drop privileges or look for a feature, and without which they go on. */
const refused = {
  otherProcesses:
    'pidfd_open tkill setpriority ioprio_set sched_setaffinity sched_setscheduler sched_setparam sched_setattr ' +
    'move_pages setsid setpgid execveat',
  privileges: 'setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset personality',
  kernelSurface:
    'io_uring_setup io_uring_enter io_uring_register inotify_add_watch name_to_handle_at memfd_create memfd_secret ' +
    'mknod mknodat',
}

/** The calls that are fatal whatever their arguments are. */
export const fatalCalls = Object.values(fatal).flatMap((names) => names.split(' '))

const modeCalls =
  'chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat setxattr lsetxattr fsetxattr setxattrat removexattr ' +
  'lremovexattr fremovexattr removexattrat utime utimes futimesat utimensat'

/** Calls that take a process id as their first argument; a process may name itself. */
const signalCalls = 'kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo'

/** A filter for seccomp that lets all calls pass but those that no parser needs. */
export function toFilter(allowed: AllowedCalls, architecture: Architecture): Instruction[] {
  const onCall = (name: string, block: Instruction[]): Instruction[] => {
    const number = findCallNumber(name, architecture)
    return number === undefined ? [] : [[code.jumpEqual, 0, block.length, number], ...block]
  }
  const answerAll = (names: string, answer: Instruction) => names.split(' ').flatMap((name) => onCall(name, [answer]))
  const refuseAll = (names: string) => answerAll(names, notPermitted)
  const newProcess = allowed.newProcesses === 'refused' ? notPermitted : killProcess

  return [
    [code.load, 0, 0, offset.architecture],
    [code.jumpEqual, 1, 0, architectureIds[architecture]],
    killProcess,
    [code.load, 0, 0, offset.number],
    ...(architecture === 'x64' ? ([[code.jumpGreaterOrEqual, 0, 1, firstX32Call], killProcess] as Instruction[]) : []),
    ...fatalCalls.flatMap((name) => onCall(name, [killProcess])),
    ...Object.values(refused).flatMap(refuseAll),
    ...answerAll('fork vfork', newProcess),
    ...answerAll(modeCalls, allowed.modeChanges === 'ignored' ? ignored : notPermitted),
    // clamd creates its socket under a mask that leaves no permissions, and sets its mode afterwards. With only the
    // second step ignored, nobody but root could connect.
    ...(allowed.modeChanges === 'ignored' ? onCall('umask', [ignored]) : []),
    ...onCall('clone', toCloneRules(newProcess)),
    // The flags of clone3 lie in memory, where a filter cannot look. libc falls back to clone.
    ...onCall('clone3', [notImplemented]),
    ...signalCalls.split(' ').flatMap((name) => onCall(name, requireArgument(0, ['pid'], killProcess))),
    ...onCall('prlimit64', requireArgument(0, [0, 'pid'], killProcess)),
    ...onCall('ioctl', rejectArgument(1, [...terminalInput, ...ownerRequests], killProcess)),
    ...onCall('fcntl', rejectArgument(1, ownerCommands, killProcess)),
    ...onCall('prctl', rejectArgument(0, [deathSignal], notPermitted)),
    ...refuseAll('truncate'),
    ...onCall('open', toOpenRules(1)),
    ...onCall('openat', toOpenRules(2)),
    // The flags of openat2 lie in memory. libc does not use it.
    ...onCall('openat2', [notImplemented]),
    ...onCall('mmap', [
      [code.load, 0, 0, offset.argument(3)],
      [code.jumpAnyBit, 0, 2, mapAnonymous],
      [code.jumpAnyBit, 0, 1, mapUncounted],
      notPermitted,
      allow,
    ]),
    ...toSocketRules(allowed.sockets, onCall, refuseAll),
    ...onCall('sendto', toSendRules(3)),
    ...onCall('sendmsg', toSendRules(2)),
    ...onCall('sendmmsg', toSendRules(3)),
    allow,
  ]
}

/** The bytes of a filter for the kernel, as hexadecimal digits, and the places in them that take the process id. */
export function encodeFilter(instructions: Instruction[]): { filter: string; pidOffsets: number[] } {
  const bytes = Buffer.alloc(instructions.length * 8)
  const pidOffsets: number[] = []
  for (const [index, [code, jumpTrue, jumpFalse, value]] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(jumpTrue, index * 8 + 2)
    bytes.writeUInt8(jumpFalse, index * 8 + 3)
    if (value === 'pid') pidOffsets.push(index * 8 + 4)
    else bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return { filter: bytes.toString('hex'), pidOffsets }
}

/** `index` is that of the flags. */
const toOpenRules = (index: number): Instruction[] => [
  [code.load, 0, 0, offset.argument(index)],
  [code.jumpAnyBit, 0, 4, openTruncate],
  [code.and, 0, 0, accessMode.mask],
  [code.jumpEqual, 2, 0, accessMode.write],
  [code.jumpEqual, 1, 0, accessMode.readWrite],
  notPermitted,
  allow,
]

/** `index` is that of the flags. */
const toSendRules = (index: number): Instruction[] => [
  [code.load, 0, 0, offset.argument(index)],
  [code.jumpAnyBit, 0, 1, sendFastOpen],
  killProcess,
  allow,
]

/** Threads are allowed, processes and namespaces are not. */
const toCloneRules = (newProcess: Instruction): Instruction[] => [
  [code.load, 0, 0, offset.argument(0)],
  [code.jumpAnyBit, 0, 1, cloneNamespaces],
  killProcess,
  [code.jumpAnyBit, 1, 0, cloneThread],
  newProcess,
  allow,
]

function toSocketRules(
  sockets: AllowedCalls['sockets'],
  onCall: (name: string, block: Instruction[]) => Instruction[],
  refuseAll: (names: string) => Instruction[],
): Instruction[] {
  switch (sockets) {
    case 'none':
      return [...refuseAll('socketpair connect bind listen accept accept4'), ...onCall('socket', requireSocket([]))]
    case 'listen':
      // A datagram could be sent to any socket without connecting.
      return [...refuseAll('socketpair connect'), ...onCall('socket', requireSocket([family.unix]))]
    case 'connect':
      return [
        ...refuseAll('bind listen accept accept4'),
        ...onCall('socket', requireSocket([family.inet, family.inet6])),
      ]
  }
}

/** Allows the call if the argument, taken as 32 bits, has one of the values; otherwise `answer` applies. */
function requireArgument(index: number, values: Instruction[3][], answer: Instruction): Instruction[] {
  return [
    [code.load, 0, 0, offset.argument(index)],
    ...values.map((value, at): Instruction => [code.jumpEqual, values.length - at, 0, value]),
    answer,
    allow,
  ]
}

/** `answer` applies if the argument, taken as 32 bits, has one of the values; otherwise the call is allowed. */
function rejectArgument(index: number, values: number[], answer: Instruction): Instruction[] {
  return [
    [code.load, 0, 0, offset.argument(index)],
    ...values.map((value, at): Instruction => [code.jumpEqual, values.length - at, 0, value]),
    allow,
    answer,
  ]
}

/**
 * Libraries try Unix and netlink sockets, to ask a service of the machine or for its addresses, and go on without.
 * Other sockets that are not allowed are fatal.
 */
function requireSocket(families: number[]): Instruction[] {
  const typeRules: Instruction[] = [
    [code.load, 0, 0, offset.argument(1)],
    [code.and, 0, 0, socketTypes.mask],
    [code.jumpEqual, 3, 0, socketTypes.stream],
    // Libraries send datagrams to the system log and to name servers.
    [code.jumpEqual, 0, 1, socketTypes.datagram],
    notPermitted,
    killProcess,
    ...requireArgument(2, streamProtocols, killProcess),
  ]
  return [
    [code.load, 0, 0, offset.argument(0)],
    ...families.map((value, at): Instruction => [code.jumpEqual, families.length - at + 3, 0, value]),
    [code.jumpEqual, 1, 0, family.unix],
    [code.jumpEqual, 0, 1, family.netlink],
    notPermitted,
    killProcess,
    ...(families.length === 0 ? [] : typeRules),
  ]
}
