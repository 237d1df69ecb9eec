import { findCallNumber } from '../../src/engines/jail/system-calls.ts'

/** Calls that the hostile program makes and that no filter names. */
const others: Record<string, [x64: number, arm64: number]> = {
  unlinkat: [263, 35],
  linkat: [265, 37],
  close: [3, 57],
  exit_group: [231, 94],
  execve: [59, 221],
}
const named = [
  ...['fchmodat', 'inotify_add_watch', 'socket', 'connect', 'kill', 'tgkill', 'rt_sigqueueinfo', 'ptrace'],
  ...['process_vm_readv', 'pidfd_open', 'prlimit64', 'setpriority', 'shmget', 'mount', 'unshare', 'chroot'],
  ...['open_by_handle_at', 'setuid', 'capset', 'bpf', 'keyctl', 'io_uring_setup', 'userfaultfd'],
  ...['perf_event_open', 'memfd_create', 'clone', 'mmap', 'openat', 'truncate', 'sendto', 'fcntl', 'ioctl', 'prctl'],
]
const architecture = process.arch === 'x64' ? 'x64' : 'arm64'

/** Numbers of the calls that the hostile program makes, on this machine. */
export const hostileNumbers = Object.fromEntries([
  ...Object.entries(others).map(([name, [x64, arm64]]) => [name, architecture === 'x64' ? x64 : arm64]),
  ...named.map((name) => [name, findCallNumber(name, architecture)]),
])
