import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { describeProcesses, findProcesses } from '../../../../acceptance/support/processes.ts'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { listMissingParts } from '../../src/engines/jail/jail.ts'
import { newContent } from '../scans/scan-support.ts'
import { waitFor } from '../support/wait-for.ts'
import { findMistakes, openAdapter } from './external-support.ts'

const clamscan = '/usr/bin/clamscan'
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$', 'EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('')
const signal = new AbortController().signal
const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
const lacksNamespaces =
  spawnSync('unshare', ['--mount', '--net', ...asRoot, 'true']).status !== 0 && 'the kernel grants no namespaces'
const faults = listMissingParts().faults[0] ?? false

describe('a command', { skip: faults }, () => {
  const path = process.env.PATH
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'assay-command-'))
    chmodSync(dir, 0o711)
  })
  after(() => {
    process.env.PATH = path
    rmSync(dir, { recursive: true, force: true })
  })

  /** A program of Node. */
  const open = (code: string, change: Record<string, unknown> = {}, onEscape?: (parser: string) => void) =>
    openAdapter(
      { kind: 'command', program: process.execPath, args: ['-e', code, '{file}'], ...change },
      { dataDir: dir, ...(onEscape === undefined ? {} : { onEscape }) },
    )

  async function run(code: string, change: Record<string, unknown> = {}, text = 'some content') {
    const adapter = await open(code, change)
    try {
      return await adapter.scan(newContent(text), { signal, fileName: 'a.txt' })
    } finally {
      await adapter.close()
    }
  }

  /** A program of the shell, which starts in a tenth of the time of Node. */
  const runShell = (code: string, change: Record<string, unknown> = {}) =>
    run('', { program: '/bin/sh', args: ['-c', code, 'sh', '{file}'], ...change })

  test('gets the content as a file that it cannot change, or as its standard input', async () => {
    const report = (read: string) => `
      const fs = require('node:fs')
      const text = ${read}
      const attempt = (act) => { try { act(); return 'done' } catch (error) { return error.code } }
      console.log('found', text)
      console.log('found', attempt(() => fs.writeFileSync(process.argv[1] ?? '/etc/passwd', 'other')))
      console.log('found', attempt(() => fs.writeFileSync(process.env.TMPDIR + '/own', 'scratch')))
      console.log('found', Object.keys(process.env).filter((name) => name !== 'PWD').sort().join())
      process.exitCode = 1`
    const threat_pattern = '^found (.*)$'
    const variables = 'HOME,LC_ALL,PATH,TMPDIR'
    const asFile = await run(report("fs.readFileSync(process.argv[1], 'utf8')"), { threat_pattern })
    assert.deepEqual(asFile.findings, ['some content', 'EACCES', 'done', variables])
    const args = ['-e', report("fs.readFileSync(0, 'utf8')")]
    assert.deepEqual((await run('', { threat_pattern, args })).findings, ['some content', 'EACCES', 'done', variables])
  })

  test('has no network, no other files and no other programs', async () => {
    writeFileSync(join(dir, 'secret'), 'secret', { mode: 0o644 })
    const code = `
      const fs = require('node:fs')
      const attempt = (act) => { try { act(); return 'done' } catch (error) { return error.code } }
      console.log('found', attempt(() => fs.readFileSync(${JSON.stringify(join(dir, 'secret'))})))
      console.log('found', attempt(() => fs.readdirSync('/proc/1/fd')))
      console.log('found', require('node:child_process').spawnSync('/bin/true').error?.code)
      process.exitCode = 1`
    const { findings } = await run(code, { threat_pattern: '^found (.*)$' })
    assert.deepEqual(findings, ['EACCES', 'EPERM'])
    const escapes: string[] = []
    const adapter = await open(
      "require('node:net').connect(80, '127.0.0.1').on('error', () => process.exit(0))",
      {},
      (parser) => escapes.push(parser),
    )
    await assert.rejects(adapter.scan(newContent('text'), { signal, fileName: 'a' }), /ended by SIGSYS/)
    await adapter.close()
    assert.deepEqual(escapes, ['command'])
  })

  test('answers by its exit code, and its output names what it found', async () => {
    const exit = (code: number, text = '') => `echo '${text}'; exit ${code}`
    assert.deepEqual((await runShell(exit(0, 'all is well'))).findings, [])
    assert.deepEqual((await runShell(exit(1))).findings, ['UnnamedThreat'])
    const threat_pattern = ': (.+) FOUND$'
    const listed = await runShell(exit(1, 'a: One FOUND\nb: Two FOUND\na: One FOUND\n'), { threat_pattern })
    assert.deepEqual(listed.findings, ['One', 'Two'])
    assert.deepEqual((await runShell(exit(1, 'nothing of the kind'), { threat_pattern })).findings, ['UnnamedThreat'])
    // A program that names a threat is believed, whichever of the known codes it ends with.
    assert.deepEqual((await runShell(exit(0, 'a: One FOUND'), { threat_pattern })).findings, ['One'])
    const codes = { clean_exit_codes: [0, 10], threat_exit_codes: [3] }
    assert.deepEqual((await runShell(exit(10), codes)).findings, [])
    assert.deepEqual((await runShell(exit(3), codes)).findings, ['UnnamedThreat'])
    await assert.rejects(runShell(exit(1), codes), /ended with the code 1/)
    await assert.rejects(runShell(exit(2, 'a: One FOUND'), { threat_pattern }), EngineDown)
  })

  test('that crashes, or cannot start, has not answered', async () => {
    for (const name of ['SIGSEGV', 'SIGABRT', 'SIGKILL', 'SIGTERM']) {
      await assert.rejects(runShell(`kill -${name.slice(3)} $$`), new RegExp(`ended by ${name}`))
    }
    // The launcher and the shell end with codes of their own, which are not those of the program.
    const all = { clean_exit_codes: Array.from({ length: 126 }, (_, code) => code), threat_exit_codes: [255] }
    const script = join(dir, 'broken')
    writeFileSync(script, 'neither a script nor a program', { mode: 0o755 })
    await assert.rejects(run('', { program: script, ...all }), /could not be started|ended by SIGABRT/)
    await assert.rejects(run('', { ...all, scratch_mb: 1 }, 'x'.repeat(2 ** 20 + 1)), /larger than scratch_mb/)
  })

  test('whose launcher fails has not answered, whatever the exit code of the launcher is', async () => {
    const bin = mkdtempSync(join(dir, 'bin-'))
    chmodSync(bin, 0o755)
    for (const code of [0, 1]) {
      writeFileSync(join(bin, 'nice'), `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 })
      process.env.PATH = `${bin}:${path}`
      await assert.rejects(run(''), /could not be started/).finally(() => {
        process.env.PATH = path
      })
    }
  })

  test('that uses too much memory, time or output is ended', async () => {
    await assert.rejects(
      run('for (const kept = [];;) kept.push(Buffer.alloc(2 ** 24, 1))', { memory_mb: 256 }),
      EngineDown,
    )
    await assert.rejects(run('for (;;) {}', { cpu_seconds: 1 }), /ended by SIG(KILL|XCPU)/)
    const endless = `${grow('x', 2 ** 16)}; while :; do echo $text; done`
    await assert.rejects(runShell(endless), /printed more than/)
    await assert.rejects(runShell(`exec >&2; ${endless}`), /printed more than/)
  })

  test('that ignores SIGTERM, or stops reading, is ended with the scan', async () => {
    const ignoring = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"
    for (const [code, text] of [
      [ignoring, 'text'],
      ["process.kill(process.pid, 'SIGSTOP')", 'text'],
      [ignoring, 'x'.repeat(2 ** 22)],
    ]) {
      const args = ['-e', `${code}; // assay-mark-${process.pid}`]
      const adapter = await open('', { args })
      const caller = new AbortController()
      const scan = adapter.scan(newContent(text ?? ''), { signal: caller.signal, fileName: 'a' })
      scan.catch(() => {})
      await waitFor(() => listMarked().length > 0)
      caller.abort(new Error('The caller left'))
      await assert.rejects(scan, { message: 'The caller left' })
      await waitFor(() => listMarked().length === 0)
      await adapter.close()
    }
  })

  test('ends with a service that is killed, and its file with it', { skip: lacksNamespaces }, async () => {
    const code = `setInterval(() => {}, 1000) // assay-mark-${process.pid}`
    const holder = fileURLToPath(new URL('command-holder.ts', import.meta.url))
    const service = spawn(process.execPath, [holder, dir, code], { stdio: 'ignore' })
    // The launcher has become the program when only the arguments of the program are left.
    const findLine = () => listMarked().find((line) => / -e setInterval.* \/.*\/file$/.test(line))
    await waitFor(() => findLine() !== undefined)
    const pid = Number.parseInt(findLine() ?? '', 10)
    assert.ok(readFileSync(`/proc/${pid}/mounts`, 'utf8').includes(join(dir, 'engines')), 'it has a mount of its own')
    service.kill('SIGKILL')
    await waitFor(() => listMarked().length === 0)
    assert.deepEqual(readdirSync(join(dir, 'engines', '0', 'scratch')), [])
  })

  test('that does not read all of its standard input has not scanned it', async () => {
    const text = 'x'.repeat(2 ** 22)
    const none = { program: '/bin/sh', args: ['-c', 'exit 0'] }
    await assert.rejects(run('', none, text), /before it had read/)
    const all = { program: '/usr/bin/tail', args: ['-c', '1'] }
    assert.deepEqual((await run('', all, text)).findings, [])
  })

  test('that never reads its standard input makes no small content clean', async () => {
    const never = { program: '/bin/true', args: ['x'] }
    for (const bytes of [0, 10, 60_000]) {
      await assert.rejects(run('', never, 'x'.repeat(bytes)), /does not read its standard input/)
    }
  })

  test('whose output cannot be matched in bounded time names nothing, and is not clean', async () => {
    const threat_pattern = ': (.+?)(?:\\.UNOFFICIAL)? FOUND$'
    const lines = 'n=0; while [ $n -le 300 ]; do echo x; n=$((n+1)); done'
    for (const print of [`${grow(': ', 2 ** 19)}; echo "$text"`, lines]) {
      const scan = (code: number) => runShell(`${print}; exit ${code}`, { threat_pattern })
      await assert.rejects(scan(0), /too many lines, or one that is too long/)
      assert.deepEqual((await scan(1)).findings, ['UnnamedThreat'])
    }
  })

  test('has a directory that other processes with the same data directory leave alone', async () => {
    const bin = mkdtempSync(join(dir, 'bin-'))
    writeFileSync(join(bin, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    process.env.PATH = `${bin}:${path}`
    try {
      const service = await open('')
      const scan = async () => (await service.scan(newContent('text'), { signal, fileName: 'a' })).findings
      const command = await open('')
      assert.deepEqual(await scan(), [])
      await command.close()
      assert.deepEqual(await scan(), [])
      await service.close()
      // A directory whose process was killed has a lock that no process holds.
      mkdirSync(join(dir, 'engines', '7'))
      writeFileSync(join(dir, 'engines', '7.lock'), '')
      await (await open('')).close()
      assert.ok(!existsSync(join(dir, 'engines', '7')))
    } finally {
      process.env.PATH = path
    }
  })

  test('leaves nothing behind where the kernel grants no namespaces', async () => {
    const bin = mkdtempSync(join(dir, 'bin-'))
    writeFileSync(join(bin, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    process.env.PATH = `${bin}:${path}`
    try {
      const code =
        "console.log('found', require('node:fs').readFileSync(process.argv[1], 'utf8'), process.env.TMPDIR); process.exitCode = 1"
      const adapter = await open(code, { threat_pattern: '^found (.*)$' })
      const [found = ''] = (await adapter.scan(newContent('shared'), { signal, fileName: 'a' })).findings
      const [text, temporary = ''] = found.split(' ')
      assert.equal(text, 'shared')
      assert.match(temporary, /^\/dev\/shm\//)
      assert.deepEqual(readdirSync(join(temporary, '..', '..')), [])
      await adapter.close()
      assert.ok(!existsSync(join(temporary, '..', '..')))
    } finally {
      process.env.PATH = path
    }
  })

  test('can be clamscan, which unpacks in its scratch directory', {
    skip: !existsSync(clamscan) && 'clamscan is not installed',
  }, async () => {
    const database = join(dir, 'database')
    cpSync(fileURLToPath(new URL('../../signatures/assay.ndb', import.meta.url)), join(database, 'assay.ndb'))
    const base = {
      program: clamscan,
      reads: [database],
      threat_pattern: '^.*: (.+?)(?:\\.UNOFFICIAL)? FOUND$',
    }
    const archive = spawnSync('python3', ['-c', zipScript], { input: eicar, encoding: 'latin1' }).stdout
    for (const last of ['{file}', '-']) {
      const adapter = await open('', { ...base, args: ['--no-summary', `--database=${database}`, last] })
      const scan = async (text: string) => (await adapter.scan(newContent(text), { signal, fileName: 'a' })).findings
      assert.deepEqual(await scan('a harmless text'), [], last)
      assert.deepEqual(await scan(eicar), ['Eicar-Test-Signature'], last)
      assert.deepEqual(await scan(archive), ['Eicar-Test-Signature'], `${last} in an archive`)
      await adapter.close()
    }
    const broken = await open('', { ...base, args: ['--database=/nonexistent', '{file}'] })
    await assert.rejects(broken.scan(newContent(eicar), { signal, fileName: 'a' }), /ended with the code 2/)
    await broken.close()
  })
})

/** Commands of the shell that make a text of at least so many characters. */
const grow = (text: string, chars: number) =>
  `text='${text}'; while [ $\{#text} -lt ${chars} ]; do text="$text$text"; done`

const zipScript = `
import sys, zipfile
with zipfile.ZipFile(sys.stdout.buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('eicar.com', sys.stdin.read())`

/** Processes that a test of this file has started. */
const listMarked = (): string[] => describeProcesses(findProcesses(`assay-mark-${process.pid}`))

test('wrong options of a command are named', () => {
  const base = { name: 'other', kind: 'command', program: '/bin/true' }
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ name: 'other', kind: 'command' }, /program is missing: add program = /],
    [{ ...base, program: 'clamscan' }, /program must be the path of a program/],
    [{ ...base, program: '/usr/bin' }, /program is not a program that can be executed/],
    [{ ...base, args: '{file}' }, /args must be a list of texts/],
    [{ ...base, args: ['{file}', '{file}'] }, /args must name \{file\} once/],
    [{ ...base, reads: ['data'] }, /reads must be a list of paths/],
    [{ ...base, reads: ['/does/not/exist'] }, /reads names \/does\/not\/exist, which does not exist/],
    [{ ...base, clean_exit_codes: [1] }, /threat_exit_codes and clean_exit_codes must not have a code in common/],
    [{ ...base, clean_exit_codes: [0, 127] }, /clean_exit_codes must not have 126 or 127/],
    [{ ...base, clean_exit_codes: [256] }, /clean_exit_codes must be a list of whole numbers from 0 to 255/],
    [{ ...base, threat_pattern: '(' }, /threat_pattern must be a regular expression/],
    [{ ...base, memory_mb: 1 }, /memory_mb must be a whole number/],
  ]
  for (const [values, mistake] of cases) assert.match(findMistakes(values)[0] ?? '', mistake, JSON.stringify(values))
  assert.deepEqual(findMistakes({ ...base, args: ['--scan={file}'], reads: ['/etc'], cpu_seconds: 5 }), [])
})
