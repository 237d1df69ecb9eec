import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findMistakes } from './external-support.ts'

const clamd = { name: 'other', kind: 'clamd', address: '/run/clamd.sock' }

test('a complete table has no mistakes', () => {
  const all = {
    required: false,
    timeout: '500ms',
    retries: 0,
    concurrency: 4,
    sees: 'members',
    min_bytes: 1,
    max_bytes: 1000,
    types: ['application/pdf', 'image/*'],
    skip_types: ['text/plain'],
    cache: '10m',
    check_every: '1m',
  }
  assert.deepEqual(findMistakes(clamd, { ...clamd, ...all, name: 'second' }), [])
})

test('each mistake names its line, engine and option, and says what to do', () => {
  const cases: [values: Record<string, unknown>, mistake: RegExp][] = [
    [{ kind: 'clamd', address: '/a' }, /^assay\.toml line 1: engine: name is missing: add name = /],
    [{ ...clamd, name: 'a b' }, /engine "a b": name must be 1 to 40 letters/],
    [{ ...clamd, name: 'ClamAV' }, /name belongs to an engine of Assay: choose another one/],
    [{ name: 'ClamAV', kind: 'builtin', timeout: '3s' }, /timeout is not an option of this kind/],
    [{ name: 'mine', kind: 'builtin' }, /name must be ClamAV or YARA for the kind builtin/],
    [{ ...clamd, weight: -1 }, /weight must be a number from 0 to 9/],
    [{ ...clamd, heuristics: '(' }, /heuristics must be a regular expression/],
    [{ name: 'other' }, /engine "other": kind is missing: add kind = one of .*clamd/],
    [{ ...clamd, kind: 'soap' }, /kind must be one of .*clamd.*\. Given: "soap"/],
    [{ ...clamd, kind: 'constructor' }, /kind must be one of/],
    [{ name: 'other', kind: 'clamd' }, /address is missing: add address = "clamav\.example\.com:3310"/],
    [{ ...clamd, address: 'clamav:70000' }, /address must be the path of a socket/],
    [{ ...clamd, tls: true }, /tls is for a host and port/],
    [{ ...clamd, address: 'a:1', tls: true, ca_file: '/does/not/exist' }, /ca_file names a file that cannot be read/],
    [{ ...clamd, address: 'a:1', tls: true, cert_file: '/etc/hostname' }, /cert_file and key_file go together/],
    [{ ...clamd, address: 'a:1', ca_file: '/etc/hostname' }, /ca_file is not an option of this kind/],
    [{ ...clamd, required: 'yes' }, /required must be true or false\. Given: "yes"/],
    [{ ...clamd, timeout: 30 }, /timeout must be a duration such as 500ms, 30s or 2m/],
    [{ ...clamd, timeout: '1ms' }, /timeout must be a duration .* from 100 ms/],
    [{ ...clamd, retries: 1.5 }, /retries must be a whole number from 0 to 5/],
    [{ ...clamd, concurrency: 0 }, /concurrency must be a whole number from 1/],
    [{ ...clamd, sees: 'all' }, /sees must be one of files, members/],
    [{ ...clamd, types: 'image/png' }, /types must be a list of media types/],
    [{ ...clamd, types: ['png'] }, /types must be a list of media types/],
    [{ ...clamd, timeuot: '3s' }, /timeuot is not an option of this kind of engine\. Its options: .*timeout/],
  ]
  for (const [values, mistake] of cases) {
    const mistakes = findMistakes(values)
    assert.equal(mistakes.length, 1, JSON.stringify([values, mistakes]))
    assert.match(mistakes[0] ?? '', mistake)
  }
})

test('a key that cannot be used is a mistake that does not show it', () => {
  const [mistake = ''] = findMistakes({ ...clamd, address: 'a:1', tls: true, cert_file: '/etc/hostname', key: 'hush' })
  assert.match(mistake, /key must be a private key in PEM form\. The value is not shown/)
  assert.doesNotMatch(mistake, /hush/)
})

test('two engines cannot have one name', () => {
  assert.match(findMistakes(clamd, { ...clamd, name: 'OTHER' })[0] ?? '', /line 2: engine "OTHER": name belongs to/)
})
