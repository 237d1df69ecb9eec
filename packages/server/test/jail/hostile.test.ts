import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { listMissingParts } from '../../src/engines/jail/jail.ts'
import type { HostileOptions } from './run-hostile.ts'

type Attempts = Record<string, string> & { files: string[]; socket: boolean }

const program = fileURLToPath(new URL('run-hostile.ts', import.meta.url))
const isRoot = process.getuid?.() === 0
const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--']
const refusals = ['EPERM', 'EACCES', 'ENOMEM', 'EMFILE', 'EAGAIN', 'killed']

let compileCache = ''

const canRunAsOrdinaryUser =
  !isRoot || spawnSync('setpriv', [...nobody.slice(1), 'test', '-r', program], { stdio: 'ignore' }).status === 0
const skipUser = canRunAsOrdinaryUser ? false : 'an ordinary user cannot read this directory'

describe('a hostile program in the place of a parser', { skip: listMissingParts().faults[0] ?? false }, () => {
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'assay-no-namespaces-'))
    writeFileSync(join(dir, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    chmodSync(dir, 0o755)
    // Ordinary users cannot write to the compile cache of the test run, and most of the tests run as one.
    compileCache = mkdtempSync(join(dir, 'compile-cache-'))
    chmodSync(compileCache, 0o777)
  })
  after(() => rmSync(dir, { recursive: true }))

  test('gets nothing when root has started the service', { skip: !isRoot }, async () => {
    requireRefusals(await attack([], { firstFatal: 0, startsThreads: true }))
  })
  test('gets nothing when an ordinary user has started the service', { skip: skipUser }, async () => {
    requireRefusals(await attack(isRoot ? nobody : [], { firstFatal: 6, startsThreads: true }))
  })
  test('gets nothing where the kernel grants no namespaces', { skip: skipUser }, async () => {
    requireRefusals(await attack(isRoot ? nobody : [], { firstFatal: 12 }, `${dir}:${process.env.PATH}`))
  })
  test('gets nothing on Linux 6.1, but freshclam connects to every port', {
    skip: skipUser,
  }, async () => {
    requireRefusals(await attack(isRoot ? nobody : [], { landlock: 2 }), [anyPort])
  })
})

async function attack(prefix: string[], options: HostileOptions, path = process.env.PATH) {
  const [command = '', ...args] = [...prefix, process.execPath, program, JSON.stringify(options)]
  const env = { PATH: path, TMPDIR: tmpdir(), NODE_COMPILE_CACHE: compileCache }
  const { stdout } = await promisify(execFile)(command, args, { env, cwd: '/' })
  const report: Report = JSON.parse(stdout)
  return { ...report, options }
}

type Report = {
  results: Record<string, Attempts>
  signals: Record<string, string>
  connections: number
  isEmpty: boolean
  mode: number
}

/** The attempt that freshclam succeeds with on kernels whose Landlock has no network rules. */
const anyPort = 'connect by TCP'

/** Attempts that succeed or seem to, by parser; docs/security.md names them. */
const permitted: Record<string, string[]> = {
  clamd: ['change the mode of the master key'],
  command: ['change the mode of the master key'],
  freshclam: ['change the mode of the master key'],
}

/** Attempts that end a parser, so that the service learns of them. */
const fatal = [
  'open a raw socket',
  'open a packet socket',
  'signal the service',
  'signal the process group',
  'signal a thread of the service',
  'queue a signal to the service',
  'trace the service',
  'limit the service',
  'read the memory of the service by a call',
  'attach shared memory',
  'mount',
  'create a user namespace',
  'change the root',
  'open by handle',
  'load a BPF program',
  'use keys of the kernel',
  'handle page faults',
  'measure the machine',
  'connect by MPTCP',
  'connect by TCP Fast Open',
  'choose the signal of a descriptor',
  'make the service the owner of a descriptor',
  'make the service the owner by another command',
  'make the service the owner by FIOSETOWN',
  'make the service the owner by SIOCSPGRP',
]

function requireRefusals(
  { results, signals, connections, isEmpty, mode, options }: Awaited<ReturnType<typeof attack>>,
  ofFreshclam = listMissingParts().notes.length === 0 ? [] : [anyPort],
) {
  const isPermitted = (parser: string, name: string) =>
    permitted[parser]?.includes(name) || (parser === 'freshclam' && ofFreshclam.includes(name))
  for (const [parser, { files, socket, ...attempts }] of Object.entries(results)) {
    const successes = Object.entries(attempts).filter(([, result]) => !refusals.includes(result))
    const names = successes.filter(([name, result]) => result !== 'done' || !isPermitted(parser, name))
    assert.deepEqual(names, [], `${parser} must not do these`)
    for (const name of fatal) assert.equal(attempts[name], 'killed', `${parser}: ${name}`)
    assert.equal(attempts['fork 10,000 times'], ['freshclam', 'command'].includes(parser) ? 'EPERM' : 'killed')
    if (options.startsThreads) assert.equal(attempts['start 10,000 threads'], 'EAGAIN', parser)
    assert.ok(Object.keys(attempts).length > 40, `${parser} attempted ${Object.keys(attempts).length} things`)
    assert.deepEqual(files, [], `${parser} must inherit no file`)
    assert.equal(
      socket,
      !['clamd', 'command', 'freshclam', 'modelConversion'].includes(parser),
      `the socket of ${parser}`,
    )
  }
  for (const [call, signal] of Object.entries(signals)) assert.equal(signal, 'SIGSYS', call)
  if (options.firstFatal !== undefined) assert.equal(Object.keys(signals).length, Object.keys(results).length)
  assert.equal(connections, 'freshclam' in results ? ofFreshclam.length : 0)
  assert.equal(isEmpty, false, 'the file elsewhere still has its content')
  assert.equal(mode, 0o600, 'the mode of the master key')
}
