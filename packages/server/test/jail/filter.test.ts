import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type AllowedCalls, fatalCalls, type Instruction, toFilter } from '../../src/engines/jail/filter.ts'
import { listMissingParts } from '../../src/engines/jail/jail.ts'
import { type Architecture, architectureIds, findCallNumber } from '../../src/engines/jail/system-calls.ts'

const own = 4711
const nothing: AllowedCalls = { sockets: 'none', modeChanges: 'refused', newProcesses: 'fatal' }
const results: Record<number, string> = {
  2147418112: 'allowed',
  327680: 'ignored',
  327681: 'EPERM',
  327718: 'ENOSYS',
  2147483648: 'killed',
}

/** Interprets a filter as the kernel does. */
function run(filter: Instruction[], call: { number: number; architecture: number; args?: number[] }): string {
  const words = [call.number, call.architecture, 0, 0, ...(call.args ?? []).flatMap((arg) => [arg, 0])]
  let accumulator = 0
  for (let at = 0; ; at++) {
    const [code, jumpTrue, jumpFalse, given] = filter[at] ?? assert.fail('the filter has no end')
    const value = given === 'pid' ? own : given
    const jump = (isTrue: boolean) => (at += isTrue ? jumpTrue : jumpFalse)
    if (code === 0x20) accumulator = words[value / 4] ?? 0
    else if (code === 0x54) accumulator &= value
    else if (code === 0x15) jump(accumulator === value)
    else if (code === 0x35) jump(accumulator >= value)
    else if (code === 0x45) jump((accumulator & value) !== 0)
    else if (code === 0x06) return results[value >>> 0] ?? assert.fail(`result ${value}`)
    else assert.fail(`instruction ${code}`)
  }
}

for (const architecture of ['x64', 'arm64'] as Architecture[]) {
  const ask = (allowed: Partial<AllowedCalls>, name: string, ...args: number[]) => {
    const number = findCallNumber(name, architecture) ?? assert.fail(`no ${name}`)
    return run(toFilter({ ...nothing, ...allowed }, architecture), {
      number,
      architecture: architectureIds[architecture],
      args,
    })
  }

  describe(`the filter for ${architecture}`, () => {
    test('kills a process that uses the calls of another architecture, or those of x32', () => {
      const filter = toFilter(nothing, architecture)
      const other = architectureIds[architecture === 'x64' ? 'arm64' : 'x64']
      assert.equal(run(filter, { number: 0, architecture: other }), 'killed')
      assert.equal(run(filter, { number: 0, architecture: 0x40000003 }), 'killed')
      if (architecture === 'arm64') return
      assert.equal(run(filter, { number: 0x40000000 + 42, architecture: architectureIds.x64 }), 'killed')
    })

    test('lets the calls of a running program pass', () => {
      const filter = toFilter(nothing, architecture)
      // read, mmap, exit_group and execve
      for (const number of architecture === 'x64' ? [0, 9, 231, 59] : [63, 222, 94, 221])
        assert.equal(run(filter, { number, architecture: architectureIds[architecture] }), 'allowed')
    })

    test('allows threads, but neither processes nor namespaces', () => {
      const thread = 0x3d0f00
      assert.equal(ask({}, 'clone', thread), 'allowed')
      assert.equal(ask({}, 'clone', 17), 'killed')
      assert.equal(ask({ newProcesses: 'refused' }, 'clone', 17), 'EPERM')
      for (const newProcesses of ['refused', 'fatal'] as const)
        assert.equal(ask({ newProcesses }, 'clone', thread | 0x10000000), 'killed')
      assert.equal(ask({}, 'clone3'), 'ENOSYS')
      if (architecture === 'arm64') return
      assert.equal(ask({}, 'vfork'), 'killed')
      assert.equal(ask({ newProcesses: 'refused' }, 'fork'), 'EPERM')
    })

    test('allows signals to the process itself alone', () => {
      for (const name of ['kill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo']) {
        assert.equal(ask({}, name, own), 'allowed')
        for (const other of [0, 1, own + 1, 0xffffffff]) assert.equal(ask({}, name, other), 'killed')
      }
      assert.equal(ask({}, 'prlimit64', 0), 'allowed')
      assert.equal(ask({}, 'prlimit64', own + 1), 'killed')
    })

    test('allows the sockets of its policy alone', () => {
      const [unix, inet, inet6, netlink, packet] = [1, 2, 10, 16, 17]
      const [stream, datagram, raw] = [1 | 0o2000000, 2 | 0o4000, 3]
      for (const sockets of ['none', 'listen', 'connect'] as const) {
        assert.equal(ask({ sockets }, 'socket', netlink, raw), 'EPERM')
        assert.equal(ask({ sockets }, 'socket', packet, raw), 'killed')
        assert.equal(ask({ sockets }, 'socket', inet, raw), 'killed')
      }
      for (const type of [stream, datagram]) {
        assert.equal(ask({}, 'socket', unix, type), 'EPERM')
        for (const family of [inet, inet6]) assert.equal(ask({}, 'socket', family, type), 'killed')
      }
      assert.equal(ask({}, 'connect'), 'EPERM')

      assert.equal(ask({ sockets: 'listen' }, 'socket', unix, stream), 'allowed')
      assert.equal(ask({ sockets: 'listen' }, 'socket', unix, datagram), 'EPERM')
      assert.equal(ask({ sockets: 'listen' }, 'socket', inet, stream), 'killed')
      assert.equal(ask({ sockets: 'listen' }, 'bind'), 'allowed')
      assert.equal(ask({ sockets: 'listen' }, 'connect'), 'EPERM')

      for (const family of [inet, inet6]) {
        assert.equal(ask({ sockets: 'connect' }, 'socket', family, stream), 'allowed')
        assert.equal(ask({ sockets: 'connect' }, 'socket', family, datagram), 'EPERM')
      }
      assert.equal(ask({ sockets: 'connect' }, 'socket', unix, stream), 'EPERM')
      assert.equal(ask({ sockets: 'connect' }, 'listen'), 'EPERM')
    })

    test('allows to connect by TCP and the call connect alone, on which Landlock decides', () => {
      const [stream, tcp, sctp, mptcp] = [1, 6, 132, 262]
      for (const family of [2, 10]) {
        assert.equal(ask({ sockets: 'connect' }, 'socket', family, stream, tcp), 'allowed')
        for (const protocol of [1, sctp, 256, mptcp])
          assert.equal(ask({ sockets: 'connect' }, 'socket', family, stream, protocol), 'killed')
      }
      const [noSignal, fastOpen] = [0x4000, 0x20000000]
      for (const sockets of ['none', 'listen', 'connect'] as const) {
        for (const [name, before] of [
          ['sendto', [3, 0, 1]],
          ['sendmsg', [3, 0]],
          ['sendmmsg', [3, 0, 1]],
        ] as const) {
          assert.equal(ask({ sockets }, name, ...before, noSignal), 'allowed')
          assert.equal(ask({ sockets }, name, ...before, noSignal | fastOpen), 'killed')
        }
      }
    })

    test('allows neither signals by the owner of a descriptor, nor to outlive the service', () => {
      for (const command of [8, 10, 15]) assert.equal(ask({}, 'fcntl', 3, command), 'killed')
      // F_DUPFD, F_SETFD, F_SETFL and F_DUPFD_CLOEXEC
      for (const command of [0, 2, 4, 1030]) assert.equal(ask({}, 'fcntl', 3, command), 'allowed')
      for (const request of [0x8901, 0x8902]) assert.equal(ask({}, 'ioctl', 3, request), 'killed')
      // FIONBIO and FIOCLEX
      for (const request of [0x5421, 0x5451]) assert.equal(ask({}, 'ioctl', 3, request), 'allowed')
      assert.equal(ask({}, 'prctl', 1), 'EPERM')
      // PR_SET_NAME
      assert.equal(ask({}, 'prctl', 15), 'allowed')
    })

    test('refuses to empty a file that it may not write to', () => {
      const [write, truncate] = [1, 0o1000]
      assert.equal(ask({}, 'openat', 0, 0, truncate), 'EPERM')
      for (const mode of [write, 2]) assert.equal(ask({}, 'openat', 0, 0, truncate | mode), 'allowed')
      assert.equal(ask({}, 'openat', 0, 0, truncate | 3), 'EPERM')
      assert.equal(ask({}, 'openat', 0, 0, 3), 'allowed')
      assert.equal(ask({}, 'openat', 0, 0, 0), 'allowed')
      assert.equal(ask({}, 'truncate'), 'EPERM')
      assert.equal(ask({}, 'openat2'), 'ENOSYS')
      if (architecture === 'arm64') return
      for (const mode of [0, 3]) assert.equal(ask({}, 'open', 0, truncate | mode), 'EPERM')
    })

    test('refuses memory that the limit on data does not count', () => {
      const [shared, isPrivate, anonymous, growsDown, stack] = [0x01, 0x02, 0x20, 0x100, 0x20000]
      assert.equal(ask({}, 'mmap', 0, 4096, 3, isPrivate | anonymous | growsDown), 'EPERM')
      assert.equal(ask({}, 'mmap', 0, 4096, 3, isPrivate | anonymous | stack), 'allowed')
      assert.equal(ask({}, 'mmap', 0, 4096, 3, shared | anonymous), 'EPERM')
      assert.equal(ask({}, 'mmap', 0, 4096, 3, shared), 'allowed')
      assert.equal(ask({}, 'mmap', 0, 4096, 3, isPrivate | anonymous), 'allowed')
    })

    test('kills a process that makes calls which no parser makes, whatever it may do else', () => {
      for (const sockets of ['none', 'listen', 'connect'] as const) {
        const filter = toFilter({ sockets, modeChanges: 'ignored', newProcesses: 'refused' }, architecture)
        for (const name of fatalCalls) {
          const number = findCallNumber(name, architecture)
          if (number === undefined) continue
          assert.equal(run(filter, { number, architecture: architectureIds[architecture] }), 'killed', name)
        }
      }
      for (const name of ['ptrace', 'mount', 'bpf', 'shmat', 'keyctl', 'setns'])
        assert.ok(fatalCalls.includes(name), name)
    })

    test('refuses input to terminals, and changes of modes, openly or not', () => {
      assert.equal(ask({}, 'ioctl', 0, 0x5412), 'killed')
      assert.equal(ask({}, 'ioctl', 0, 0x541c), 'killed')
      assert.equal(ask({}, 'ioctl', 0, 0x5401), 'allowed')
      assert.equal(ask({}, 'fchmodat'), 'EPERM')
      assert.equal(ask({ modeChanges: 'ignored' }, 'fchmodat'), 'ignored')
      assert.equal(ask({ modeChanges: 'ignored' }, 'umask'), 'ignored')
      for (const name of ['io_uring_setup', 'memfd_create', 'setuid', 'setpriority'])
        assert.equal(ask({}, name), 'EPERM')
    })
  })
}

test('each part that the kernel lacks is named, and only those that nothing replaces are faults', () => {
  assert.deepEqual(listMissingParts({ landlock: 7, hasFilter: true }), { faults: [], notes: [] })
  const without = listMissingParts({ landlock: 0, hasFilter: true })
  assert.match(without.faults.join(), /^Landlock is not available[^,]+$/)
  assert.deepEqual(without.notes, [])
  assert.equal(listMissingParts({ landlock: 1, hasFilter: true }).faults.length, 1)
  for (const landlock of [2, 3]) {
    const { faults, notes } = listMissingParts({ landlock, hasFilter: true })
    assert.deepEqual(faults, [])
    assert.match(notes.join(), /^Landlock has no network rules[^,]+$/)
  }
  assert.equal(listMissingParts({ landlock: 2, hasFilter: false }).faults.length, 1)
  assert.equal(listMissingParts({ landlock: 2, hasFilter: false }).notes.length, 2)
})
